package soak_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
)

// logReader reads what an instance says on standard error: where it listens, and what it noticed of its troubles.
type logReader struct {
	*soak
	process *process
	file    *os.File
	rest    []byte
	raced   bool
}

// noticed are the lines that say that an instance was kept from doing harm.
var noticed = map[string]string{
	"turn let go: its lease is lost":           "lease lost",
	"turn is over or somebody else's":          "fence refused",
	"failure of a turn that is no longer ours": "fence refused",
	"leases not renewed":                       "renewal failed",
	"turn's step not stored":                   "step not stored",
}

// Write takes whole lines out of what comes.
func (l *logReader) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		l.rest = rest
		l.line(line)
	}
	return len(b), nil
}

func (l *logReader) line(line []byte) {
	_, _ = l.file.Write(append(line, '\n'))
	var said struct {
		Message string `json:"message"`
		Listen  string `json:"listen"`
	}
	if json.Unmarshal(line, &said) != nil {
		if text := string(line); !l.raced && (strings.Contains(text, "DATA RACE") || strings.HasPrefix(text, "panic:")) {
			l.raced = true
			l.Errorf("instance %s: %s; its log goes on with the stacks", l.process.name, text)
		}
		return
	}
	if said.Message == "ready" {
		l.process.url = "http://" + said.Listen
		close(l.process.ready)
	}
	if name, known := noticed[said.Message]; known {
		l.tally.count(name)
	}
}
