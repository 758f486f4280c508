package config

import "strings"

// origin remembers where each value came from.
type origin struct {
	lines     map[string]int    // by full key, for what the file holds
	variables map[string]string // by full key, for what the environment replaced
}

func newOrigin() origin {
	return origin{lines: map[string]int{}, variables: map[string]string{}}
}

func (o origin) written(key string) bool {
	_, ok := o.lines[key]
	return ok
}

// fault places a problem: at the variable that won, else at the key's line, else at the nearest line above that exists.
func (o origin) fault(key, problem string) Fault {
	if variable, ok := o.variables[key]; ok {
		return Fault{Key: variable, Problem: problem}
	}
	return Fault{Line: o.line(key), Key: key, Problem: problem}
}

func (o origin) line(key string) int {
	for ; key != ""; key = parent(key) {
		if line, ok := o.lines[key]; ok {
			return line
		}
	}
	return 1
}

// parent cuts the last name off a full key.
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}
