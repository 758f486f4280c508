package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Load reads, completes and checks the file at path. env looks up an environment variable, as os.LookupEnv does; a
// variable that is set but empty overrides nothing.
//
// The error is an *Invalid that holds every fault, or that says why the file cannot be read.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	root, fault := parse(data)
	if fault != nil {
		return nil, &Invalid{Path: path, Faults: []Fault{*fault}}
	}
	c := newConfig()
	r := newReader(env, root)
	r.read(root, reflect.ValueOf(c).Elem(), place{line: 1}, "")
	r.override(c)
	c.origin = r.origin
	c.settle()
	r.check(c)
	if len(r.faults) > 0 {
		sortFaults(r.faults)
		return nil, &Invalid{Path: path, Faults: r.faults}
	}
	c.Warnings = warnings(c)
	return c, nil
}

func unreadable(path string, err error) *Invalid {
	problem := "cannot be read"
	var at *fs.PathError
	if errors.As(err, &at) {
		problem = fmt.Sprintf("cannot be read: %v", at.Err)
	}
	problem += "; name another file with --config or FILA_CONFIG"
	return &Invalid{Path: path, Faults: []Fault{{Problem: problem}}, cause: err}
}

// parse returns the file's only document. Duplicate keys are let through, so that the reader reports all of them.
func parse(data []byte) (root ast.Node, fault *Fault) {
	defer func() {
		// A reload must not end the service because the parser met a text that its authors had not thought of.
		if recover() != nil {
			root, fault = nil, &Fault{Problem: "cannot be parsed as YAML; check its quotes, brackets and indentation"}
		}
	}()
	if line := firstBadLine(data); line > 0 {
		return nil, &Fault{Line: line, Problem: "holds bytes that are not UTF-8; save the file as UTF-8"}
	}
	file, err := parser.ParseBytes(bytes.TrimPrefix(data, []byte("\ufeff")), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxFault(err, data)
	}
	documents := slices.DeleteFunc(file.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch len(documents) {
	case 0:
		return nil, &Fault{Line: 1, Problem: "the file is empty; write at least one project under projects"}
	case 1:
		return documents[0].Body, nil
	default:
		return nil, &Fault{Line: lineOf(documents[1].Body), Problem: "a second document begins; keep one a file"}
	}
}

func firstBadLine(data []byte) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) {
			return i + 1
		}
	}
	return 0
}

// syntaxFault takes the parser's message only: its full text quotes the file, secrets included.
func syntaxFault(err error, data []byte) *Fault {
	fault := &Fault{Line: 1, Problem: "not valid YAML"}
	var syntax yaml.Error
	if !errors.As(err, &syntax) {
		return fault
	}
	fault.Problem += ": " + strings.ReplaceAll(syntax.GetMessage(), "\n", " ")
	if token := syntax.GetToken(); token != nil && token.Position != nil {
		fault.Line = max(token.Position.Line, 1)
	}
	lines := bytes.Split(data, []byte("\n"))
	if fault.Line <= len(lines) && bytes.Contains(lines[fault.Line-1], []byte("${")) {
		fault.Problem += `; between brackets write "${NAME}" with quotes`
	}
	return fault
}

// override lets the environment win over what the file said.
func (r *reader) override(c *Config) {
	top := reflect.ValueOf(c).Elem()
	for _, field := range reflect.VisibleFields(top.Type()) {
		if variable := field.Tag.Get("env"); variable != "" {
			r.overrideOne(variable, field, top.FieldByIndex(field.Index), field.Tag.Get("key"))
		}
	}
	window, _ := reflect.TypeFor[Project]().FieldByName("Debounce")
	for _, name := range sortedNames(c.Projects) {
		variable := strings.ToUpper(name) + "_MESSAGE_DEBOUNCE_SECONDS"
		into := reflect.ValueOf(c.Projects[name]).Elem().FieldByIndex(window.Index)
		r.overrideOne(variable, window, into, key("projects", name, window.Tag.Get("key")))
	}
}

func (r *reader) overrideOne(variable string, field reflect.StructField, into reflect.Value, key string) {
	value, ok := r.env(variable)
	if !ok || value == "" {
		return
	}
	r.origin.variables[key] = variable
	r.scalar(scalar{text: value, written: value}, into, place{key: key}, field.Tag)
}
