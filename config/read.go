package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// reader walks the file's nodes along the schema. It goes on after a fault, so that one run names them all.
type reader struct {
	env     func(string) (string, bool)
	anchors map[string]ast.Node
	origin  origin
	faults  []Fault
	faulty  map[string]bool // by full key; a later check does not judge what was not understood
}

// place is where a value stands in the file.
type place struct {
	key  string
	line int
}

func (p place) child(name string, line int) place {
	return place{key: key(p.key, name), line: line}
}

func newReader(env func(string) (string, bool), root ast.Node) *reader {
	r := &reader{env: env, anchors: map[string]ast.Node{}, origin: newOrigin(), faulty: map[string]bool{}}
	ast.Walk(r, root)
	return r
}

// Visit collects the anchors, so that an alias finds its value.
func (r *reader) Visit(node ast.Node) ast.Visitor {
	if anchor, ok := node.(*ast.AnchorNode); ok && anchor.Name != nil {
		r.anchors[anchor.Name.GetToken().Value] = anchor.Value
	}
	return r
}

func (r *reader) fault(at place, format string, args ...any) {
	r.faulty[at.key] = true
	problem := fmt.Sprintf(format, args...)
	if variable, ok := r.origin.variables[at.key]; ok && at.line == 0 {
		r.faults = append(r.faults, Fault{Key: variable, Problem: problem})
		return
	}
	r.faults = append(r.faults, Fault{Line: at.line, Key: at.key, Problem: problem})
}

// read decodes node into a field. An empty value leaves the default.
func (r *reader) read(node ast.Node, into reflect.Value, at place, tag reflect.StructTag) {
	node, ok := r.resolve(node, at)
	if !ok || node == nil {
		return
	}
	r.origin.lines[at.key] = at.line
	switch {
	case into.Type() == reflect.TypeFor[map[string]*Project]():
		r.projects(node, into.Interface().(map[string]*Project), at)
	case into.Kind() == reflect.Struct:
		r.structure(node, into, at)
	case into.Kind() == reflect.Map:
		r.table(node, into, at, tag)
	case into.Kind() == reflect.Slice:
		r.list(node, into, at, tag)
	default:
		s, ok := scalarOf(node)
		if !ok {
			r.fault(at, "must be %s, not %s", wanted(into.Type(), at.key), describe(node))
			return
		}
		if s, ok = r.fill(s, at); ok {
			r.scalar(s, into, at, tag)
		}
	}
}

// resolve follows aliases and anchors to the value itself; nil stands for an empty value.
func (r *reader) resolve(node ast.Node, at place) (ast.Node, bool) {
	const hops = 16 // an alias may lead to itself
	for range hops {
		switch n := node.(type) {
		case nil, *ast.NullNode:
			return nil, true
		case *ast.AnchorNode:
			node = n.Value
		case *ast.AliasNode:
			name := n.Value.GetToken().Value
			target, ok := r.anchors[name]
			if !ok {
				r.fault(at, "the alias %q has no anchor; mark the value that is meant with &", short(name))
				return nil, false
			}
			node = target
		case *ast.TagNode:
			r.fault(at, "YAML tags have no meaning here; remove the tag")
			return nil, false
		default:
			return node, true
		}
	}
	r.fault(at, "the alias leads to itself; write the value out")
	return nil, false
}

type entry struct {
	name  string
	line  int
	value ast.Node
}

// entries lists a mapping's keys in order. Of a key written twice the first counts, after a fault.
func (r *reader) entries(node ast.Node, at place) []entry {
	mapping, ok := node.(ast.MapNode)
	if !ok {
		r.fault(at, "must be a mapping of keys to values, not %s", describe(node))
		return nil
	}
	var own, merged []entry
	lines := map[string]int{}
	for pairs := mapping.MapRange(); pairs.Next(); {
		if _, ok := pairs.Key().(*ast.MergeKeyNode); ok {
			merged = append(merged, r.merged(pairs.Value(), at)...)
			continue
		}
		e := entry{name: nameOf(pairs.Key()), line: lineOf(pairs.Key()), value: pairs.Value()}
		if first, ok := lines[e.name]; ok {
			r.fault(at.child(e.name, e.line), "duplicate key; it stands on line %d already, remove one", first)
			continue
		}
		lines[e.name] = e.line
		own = append(own, e)
	}
	for _, e := range merged {
		if _, ok := lines[e.name]; !ok {
			lines[e.name] = e.line
			own = append(own, e)
		}
	}
	return own
}

// merged lists what <<: brings in. A mapping brought in may not bring in more: that keeps a file readable, and finite.
func (r *reader) merged(node ast.Node, at place) []entry {
	node, ok := r.resolve(node, at)
	if !ok {
		return nil
	}
	mapping, ok := node.(ast.MapNode)
	if !ok {
		r.fault(at, "<<: must be followed by the alias of one mapping")
		return nil
	}
	var all []entry
	for pairs := mapping.MapRange(); pairs.Next(); {
		if _, ok := pairs.Key().(*ast.MergeKeyNode); ok {
			r.fault(at, "<<: brings in a mapping that itself has <<:; bring in plain mappings only")
			continue
		}
		all = append(all, entry{name: nameOf(pairs.Key()), line: lineOf(pairs.Key()), value: pairs.Value()})
	}
	return all
}

func (r *reader) structure(node ast.Node, into reflect.Value, at place) {
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(into.Type()) {
		if name := field.Tag.Get("key"); name != "" {
			fields[name] = field
		}
	}
	for _, e := range r.entries(node, at) {
		if field, ok := fields[e.name]; ok {
			r.read(e.value, into.FieldByIndex(field.Index), at.child(e.name, e.line), field.Tag)
			continue
		}
		r.unknown(at.child(e.name, e.line), e.name, sortedNames(fields))
	}
}

func (r *reader) unknown(at place, name string, known []string) {
	hint := "remove it"
	if near := nearest(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	r.fault(at, "unknown key; %s", hint)
}

var projectName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

func (r *reader) projects(node ast.Node, into map[string]*Project, at place) {
	for _, e := range r.entries(node, at) {
		below := at.child(e.name, e.line)
		if !projectName.MatchString(e.name) {
			r.fault(below, "a project's name is a small letter, then up to 39 small letters, digits or underscores")
		}
		project := newProject(e.name)
		into[e.name] = project
		r.origin.lines[below.key] = below.line
		r.read(e.value, reflect.ValueOf(project).Elem(), below, "")
	}
}

// table decodes a map of texts, of which the tag may list the names.
func (r *reader) table(node ast.Node, into reflect.Value, at place, tag reflect.StructTag) {
	known, closed := tag.Lookup("keys")
	names := strings.Split(known, "|")
	for _, e := range r.entries(node, at) {
		below := at.child(e.name, e.line)
		if closed && !slices.Contains(names, e.name) {
			r.unknown(below, e.name, names)
			continue
		}
		value := reflect.New(into.Type().Elem()).Elem()
		r.item(e.value, value, below, "")
		into.SetMapIndex(reflect.ValueOf(e.name), value)
	}
}

// list decodes a list of texts; the tag's rules are for each of them.
func (r *reader) list(node ast.Node, into reflect.Value, at place, tag reflect.StructTag) {
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		r.fault(at, "must be a list, not %s", describe(node))
		return
	}
	values := reflect.MakeSlice(into.Type(), len(sequence.Values), len(sequence.Values))
	for i, item := range sequence.Values {
		r.item(item, values.Index(i), place{key: fmt.Sprintf("%s[%d]", at.key, i), line: lineOf(item)}, tag)
	}
	into.Set(values)
}

// item decodes a member of a map or list, which has no default that an empty value could leave.
func (r *reader) item(node ast.Node, into reflect.Value, at place, tag reflect.StructTag) {
	node, ok := r.resolve(node, at)
	switch {
	case !ok:
	case node == nil:
		r.fault(at, `has no value; write it, or "" for an empty text`)
	default:
		r.read(node, into, at, tag)
	}
}

func lineOf(node ast.Node) int {
	if node == nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return 1
	}
	return node.GetToken().Position.Line
}

// nameOf returns a key's text without its quotes.
func nameOf(node ast.MapKeyNode) string {
	if explicit, ok := node.(*ast.MappingKeyNode); ok && explicit.Value != nil {
		return explicit.Value.GetToken().Value
	}
	return node.GetToken().Value
}

func describe(node ast.Node) string {
	switch node.(type) {
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

// wanted names what a field takes.
func wanted(kind reflect.Type, key string) string {
	switch {
	case kind == reflect.TypeFor[time.Duration]():
		name, _ := unit(key)
		return "a number of " + name
	case kind.Kind() == reflect.Int:
		return "a whole number"
	case kind.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "a text"
	}
}
