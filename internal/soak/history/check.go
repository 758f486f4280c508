package history

import (
	"fmt"
	"slices"
)

// Violation is one broken promise.
type Violation struct {
	// Invariant is its short name, such as "kept" or "order".
	Invariant string
	Detail    string
}

// String is the violation on one line.
func (v Violation) String() string { return v.Invariant + ": " + v.Detail }

// Report is the verdict on a history.
type Report struct {
	Violations []Violation
	// SameTurn counts calls that overlapped another call of the same turn after an outage of the first one's instance: it was
	// on the wire already, and carries the same key.
	SameTurn int
}

// Broken lists the invariants that do not hold, each once, in alphabetical order.
func (r Report) Broken() []string {
	var names []string
	for _, v := range r.Violations {
		names = append(names, v.Invariant)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checker is a history with what the checks look up in it.
type checker struct {
	*History
	report Report

	turns  map[int64]*Turn
	places map[place][]int64 // the turns that hold a message, oldest first
	number map[place]int64   // the registration number of a message
}

// place names a message within its project.
type place struct{ project, id string }

// Check judges the history. A history without violations proves nothing by itself: whether the run came anywhere near
// trouble is for the caller to count.
func (h *History) Check() Report {
	c := &checker{History: h, turns: map[int64]*Turn{}, places: map[place][]int64{}, number: map[place]int64{}}
	slices.SortFunc(h.Turns, func(a, b Turn) int { return int(a.ID - b.ID) })
	for i := range h.Turns {
		t := &h.Turns[i]
		c.turns[t.ID] = t
		for _, m := range t.Messages {
			at := place{t.Project, m.ID}
			c.places[at] = append(c.places[at], t.ID)
		}
	}
	for _, r := range h.Receipts {
		c.number[place{r.Project, r.ID}] = r.Number
	}
	for _, check := range []func(){
		c.kept, c.notInvented, c.notDoubled, c.inOrder, c.realTime, c.oneTurn, c.fenced, c.onTime, c.oneReply, c.parts, c.ends,
		c.budget, c.silence,
	} {
		check()
	}
	return c.report
}

func (c *checker) violated(invariant, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{invariant, fmt.Sprintf(format, args...)})
}

// byConversation sorts what happened into conversations, in the order that it has.
func byConversation[T any](all []T, key func(*T) conversation) map[conversation][]*T {
	sorted := map[conversation][]*T{}
	for i := range all {
		k := key(&all[i])
		sorted[k] = append(sorted[k], &all[i])
	}
	return sorted
}

func turnConversation(t *Turn) conversation { return conversation{t.Project, t.Phone} }
