package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fault is one thing wrong, or worth a warning, in a configuration.
type Fault struct {
	// Line counts from 1; 0 is the environment, or the file as a whole.
	Line int `json:"line"`
	// Key is the full key, such as projects.clinic.agent.url, or the environment variable's name.
	Key string `json:"key"`
	// Problem says what is wrong and what to do. It never holds a secret.
	Problem string `json:"problem"`
}

// In returns the fault as one line about the file at path.
func (f Fault) In(path string) string {
	switch {
	case f.Key == "" && f.Line == 0:
		return fmt.Sprintf("%s: %s", path, f.Problem)
	case f.Key == "":
		return fmt.Sprintf("%s:%d: %s", path, f.Line, f.Problem)
	case f.Line == 0:
		return fmt.Sprintf("%s: %s", f.Key, f.Problem)
	default:
		return fmt.Sprintf("%s:%d: %s: %s", path, f.Line, f.Key, f.Problem)
	}
}

// Invalid is a configuration that cannot be used, with everything that is wrong with it.
type Invalid struct {
	Path string
	// Faults are sorted by line.
	Faults []Fault

	cause error
}

// Error returns one line a fault.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.In(e.Path)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns why the file could not be read, if that is what is wrong.
func (e *Invalid) Unwrap() error { return e.cause }

func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// key appends names to a full key. A name that would blur or break a line is quoted.
func key(at string, names ...string) string {
	for _, name := range names {
		if !plainName.MatchString(name) {
			name = strconv.Quote(short(name))
		}
		if at != "" {
			at += "."
		}
		at += name
	}
	return at
}

func short(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
