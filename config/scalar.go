package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar is a single value before it has a type.
type scalar struct {
	text    string // with the environment filled in
	written string // as it stands in the file, which is what a fault may show
	quoted  bool   // a text by its notation
	boolean bool
	filled  bool // has a part from the environment, and then takes whatever type is wanted
}

func scalarOf(node ast.Node) (scalar, bool) {
	switch n := node.(type) {
	case *ast.LiteralNode:
		return scalar{text: n.Value.Value, written: n.Value.Value, quoted: true}, true
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		return scalar{}, false
	case ast.ScalarNode:
		t := n.GetToken()
		_, boolean := n.(*ast.BoolNode)
		quoted := t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		return scalar{text: t.Value, written: t.Value, quoted: quoted, boolean: boolean}, true
	default:
		return scalar{}, false
	}
}

// not ends a fault's sentence with the value that was found, where it may be shown.
func (s scalar) not() string {
	if s.filled {
		return "; look at what the environment fills in"
	}
	_, err := strconv.ParseFloat(s.written, 64)
	switch bare := err == nil || s.written == "true" || s.written == "false"; {
	case bare && s.quoted:
		return fmt.Sprintf(", not the text %q; remove its quotes", s.written)
	case bare:
		return ", not " + s.written
	default:
		return fmt.Sprintf(", not %q", short(hideUserinfo(s.written)))
	}
}

var (
	reference    = regexp.MustCompile(`\$\$\{|\$\{[^}]*\}?`)
	variableName = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)
)

// fill replaces every ${NAME}. It works on values rather than on the file's text, so that no secret can break the YAML.
func (r *reader) fill(s scalar, at place) (scalar, bool) {
	ok := true
	s.text = reference.ReplaceAllStringFunc(s.text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		name := variableName.FindStringSubmatch(found)
		if name == nil {
			ok = false
			r.fault(at, "holds a ${ without a plain name and }; write ${NAME}, or $${ for a literal ${")
			return ""
		}
		value, set := r.env(name[1])
		if !set {
			ok = false
			r.fault(at, "the environment variable %s is not set; set it, or write $${ for a literal ${", name[1])
		}
		s.filled = true
		return value
	})
	return s, ok
}

func (r *reader) scalar(s scalar, into reflect.Value, at place, tag reflect.StructTag) {
	switch {
	case into.Type() == reflect.TypeFor[time.Duration]():
		r.duration(s, into, at, tag)
	case into.Kind() == reflect.Int:
		r.integer(s, into, at, tag)
	case into.Kind() == reflect.Bool:
		r.boolean(s, into, at)
	default:
		r.text(s, into, at, tag)
	}
}

func (r *reader) boolean(s scalar, into reflect.Value, at place) {
	if s.text != "true" && s.text != "false" || s.quoted && !s.filled {
		r.fault(at, "must be true or false%s", s.not())
		return
	}
	into.SetBool(s.text == "true")
}

func (r *reader) integer(s scalar, into reflect.Value, at place, tag reflect.StructTag) {
	n, err := strconv.ParseInt(s.text, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		r.fault(at, "must be between %d and %d%s", math.MinInt32, math.MaxInt32, s.not())
	case err != nil || s.quoted && !s.filled:
		r.fault(at, "must be a whole number%s", s.not())
	case r.within(s, float64(n), at, tag):
		into.SetInt(n)
	}
}

// longest keeps every duration, and a sum of a few, far from overflow.
const longest = 10 * 365 * 24 * time.Hour

func (r *reader) duration(s scalar, into reflect.Value, at place, tag reflect.StructTag) {
	name, one := unit(at.key)
	n, err := strconv.ParseFloat(s.text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), s.quoted && !s.filled:
		r.fault(at, "must be a number of %s%s", name, s.not())
	case math.IsNaN(n) || math.IsInf(n, 0):
		r.fault(at, "must be a finite number of %s%s", name, s.not())
	case !r.within(s, n, at, tag):
	case n > float64(longest/one):
		r.fault(at, "must be at most %d %s%s", longest/one, name, s.not())
	default:
		into.SetInt(int64(math.Round(n * float64(one))))
	}
}

// unit tells a duration's unit by the end of its key.
func unit(key string) (name string, one time.Duration) {
	switch {
	case strings.HasSuffix(key, "days"):
		return "days", 24 * time.Hour
	case strings.HasSuffix(key, "minutes"):
		return "minutes", time.Minute
	default:
		return "seconds", time.Second
	}
}

// within judges a number by the bounds in its tag.
func (r *reader) within(s scalar, n float64, at place, tag reflect.StructTag) bool {
	bounds := []struct {
		tag, words string
		broken     func(bound float64) bool
	}{
		{"min", "at least", func(bound float64) bool { return n < bound }},
		{"above", "more than", func(bound float64) bool { return n <= bound }},
		{"max", "at most", func(bound float64) bool { return n > bound }},
	}
	for _, b := range bounds {
		value, ok := tag.Lookup(b.tag)
		if !ok {
			continue
		}
		if bound, err := strconv.ParseFloat(value, 64); err != nil || b.broken(bound) {
			r.fault(at, "must be %s %s%s", b.words, value, s.not())
			return false
		}
	}
	return true
}

// text takes numbers too, as they are written: an account or a team is often one.
func (r *reader) text(s scalar, into reflect.Value, at place, tag reflect.StructTag) {
	ending := s.not()
	if into.Type() != reflect.TypeFor[string]() {
		ending = ""
	}
	problem := ""
	switch allowed, closed := tag.Lookup("oneof"); {
	case s.boolean && !s.filled:
		problem = "must be a text; put it in quotes if it is one"
	case strings.ContainsRune(s.text, 0) || !utf8.ValidString(s.text):
		problem = "holds a NUL character or bytes that are not UTF-8; remove them"
	case closed && !slices.Contains(strings.Split(allowed, "|"), s.text):
		problem = "must be " + alternatives(allowed) + ending
	default:
		if format, ok := formats[tag.Get("is")]; ok && !format.accepts(s.text) {
			problem = format.demand + ending
		}
	}
	if problem != "" {
		r.fault(at, "%s", problem)
		return
	}
	into.SetString(s.text)
}

// alternatives turns a|b|c into "a, b or c".
func alternatives(allowed string) string {
	words := strings.Split(allowed, "|")
	for i, word := range words {
		if word == "" {
			words[i] = `""`
		}
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
