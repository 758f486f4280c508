package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"fila/internal/soak/history"
)

// tally counts what happened: the faults, and the events that a run must have met to be worth anything.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

func (t *tally) count(name string) { t.add(name, 1) }

func (t *tally) add(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[name] += n
}

// essential must have happened in a run of some length. What is rarer is only counted.
var essential = []string{
	"fault: kill -9", "fault: frozen shorter than the lease", "fault: frozen longer than the lease", "fault: sessions cut",
	"fault: Postgres crashed", "fault: shut down",
	"message acknowledged", "message a duplicate", "message of another program", "sent again",
	"turn taken over", "turn superseded", "turn retried", "turn unknown", "turn asked again", "turn fired by ceiling",
	"turn of another program's rows", "reply in parts", "lease lost or fence refused",
}

// never lists what of the essential did not happen.
func (t *tally) never() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(essential), func(name string) bool { return t.counts[name] > 0 })
}

// read counts what the history shows.
func (t *tally) read(h *history.History, report history.Report) {
	for _, p := range h.Posts {
		switch p.Status {
		case "":
		case "duplicate":
			t.count("message a duplicate")
		default:
			t.count("message acknowledged")
		}
	}
	t.add("message of another program", len(h.Inserts))
	t.add("agent called", len(h.Asks))
	t.add("part sent", len(h.Sends))
	t.add("call beside an old one of the same turn", report.SameTurn)
	for _, a := range h.Asks {
		if a.Attempt > 1 {
			t.count("turn asked again")
		}
	}
	elsewhere := map[string]bool{}
	for _, i := range h.Inserts {
		elsewhere[i.Phone] = true
	}
	for i := range h.Turns {
		t.readTurn(&h.Turns[i], elsewhere)
	}
	for _, s := range h.Steps {
		if s.From != s.To && (s.To == "retrying" || s.To == "unknown") {
			t.count("turn " + strings.Replace(s.To, "retrying", "retried", 1))
		}
	}
	t.add("lease lost or fence refused", t.counts["lease lost"]+t.counts["fence refused"])
}

func (t *tally) readTurn(turn *history.Turn, elsewhere map[string]bool) {
	t.count("turn " + turn.State)
	t.count("turn fired by " + turn.FiredBy)
	if elsewhere[turn.Phone] {
		t.count("turn of another program's rows")
	}
	if slices.Contains(turn.Failures, "instance") {
		t.count("turn taken over")
	}
	if len(turn.Parts) > 1 {
		t.count("reply in parts")
	}
}

// String is a line an event, in alphabetical order.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&text, "\n%8d  %s", t.counts[name], name)
	}
	return text.String()
}
