package history

import (
	"cmp"
	"slices"
	"time"
)

// kept: what was acknowledged is in a turn, waits, or was ignored with a reason; and the conservation law held at every instant.
func (c *checker) kept() {
	if c.Lost > 0 {
		c.violated("kept", "fila_lost was not empty: %d times a message in no fate", c.Lost)
	}
	fates := map[place]bool{}
	for _, w := range c.Waiting {
		fates[place{w.Project, w.ID}] = true
	}
	for _, r := range c.Receipts {
		if r.Status == "ignored" && r.Reason != "" {
			fates[place{r.Project, r.ID}] = true
		}
	}
	for at, turns := range c.places {
		// What a superseded turn held must have gone on.
		if slices.ContainsFunc(turns, func(id int64) bool { return c.turns[id].State != "superseded" }) {
			fates[at] = true
		}
	}
	missing := func(at place, how string) {
		if !fates[at] {
			c.violated("kept", "message %s of %s was %s and is nowhere", at.id, at.project, how)
			fates[at] = true
		}
	}
	for _, p := range c.Posts {
		if p.Status != "" {
			missing(place{p.Project, p.ID}, "acknowledged as "+p.Status)
		}
	}
	for _, i := range c.Inserts {
		missing(place{i.Project, i.ID}, "inserted")
	}
}

// notInvented: what the agent reads was written, by that patient, in those words; what goes out is what the agent answered.
func (c *checker) notInvented() {
	type text struct{ project, phone, id, text string }
	written := map[text]bool{}
	for _, p := range c.Posts {
		written[text{p.Project, p.Phone, p.ID, p.Text}] = true
	}
	for _, i := range c.Inserts {
		written[text{i.Project, i.Phone, i.ID, i.Text}] = true
	}
	for _, a := range c.Asks {
		for _, m := range a.Messages {
			if !written[text{a.Project, a.Phone, m.ID, m.Text}] {
				c.violated("not invented", "turn %d asks about message %s, which its patient never wrote so", a.Turn, m.ID)
			}
		}
	}
	type answer struct {
		turn        int64
		part, parts int
		text        string
	}
	answered := map[answer]time.Duration{}
	for _, a := range c.Asks {
		for i, reply := range a.Replies {
			said := answer{a.Turn, i + 1, len(a.Replies), reply}
			if _, known := answered[said]; !known {
				answered[said] = a.Invoke
			}
		}
	}
	for _, s := range c.Sends {
		if asked, known := answered[answer{s.Turn, s.Part, s.Parts, s.Text}]; !known || asked > s.Invoke {
			c.violated("not invented", "part %d of %d of turn %d is nothing that the agent had answered", s.Part, s.Parts, s.Turn)
		}
	}
}

// notDoubled: one message, one place in one lineage of turns, and one answer that says queued.
func (c *checker) notDoubled() {
	waiting := map[place]int{}
	for _, w := range c.Waiting {
		waiting[place{w.Project, w.ID}]++
	}
	for at, turns := range c.places {
		last := waiting[at]
		for i, id := range turns {
			t := c.turns[id]
			switch {
			case i > 0 && turns[i-1] == id:
				c.violated("not doubled", "turn %d holds message %s twice", id, at.id)
			case t.State != "superseded":
				last++
			case t.SupersededBy != 0 && !slices.Contains(turns, t.SupersededBy):
				c.violated("not doubled", "turn %d does not hold message %s of turn %d, which it superseded", t.SupersededBy, at.id, id)
			}
		}
		if last > 1 {
			c.violated("not doubled", "message %s has %d places: turns %v, waiting %d", at.id, last, turns, waiting[at])
		}
	}
	queued := map[place]int{}
	for _, p := range c.Posts {
		if p.Status != "queued" {
			continue
		}
		at := place{p.Project, p.ID}
		if queued[at]++; queued[at] == 2 {
			c.violated("not doubled", "message %s was acknowledged as queued twice", p.ID)
		}
	}
}

// inOrder: in a conversation the turns, and the messages in each, follow the registration numbers; and the agent reads each
// turn as the ledger has it.
func (c *checker) inOrder() {
	for _, turns := range byConversation(c.Turns, turnConversation) {
		before := int64(0)
		for _, t := range turns {
			if !slices.IsSorted(t.Numbers) || len(t.Numbers) == 0 {
				c.violated("order", "turn %d holds its messages as %v", t.ID, t.Numbers)
				continue
			}
			if first := t.Numbers[0]; first <= before {
				c.violated("order", "turn %d begins with message %d, an earlier turn ended with %d", t.ID, first, before)
			}
			if t.State != "superseded" {
				before = t.Numbers[len(t.Numbers)-1]
			}
		}
	}
	for _, a := range c.Asks {
		t, known := c.turns[a.Turn]
		if !known {
			c.violated("order", "the agent was asked about turn %d, which is not in the ledger", a.Turn)
			continue
		}
		if !slices.EqualFunc(a.Messages, t.Messages, func(m Message, r Registered) bool { return m.ID == r.ID && m.Text == r.Text }) {
			c.violated("order", "the agent read turn %d otherwise than the ledger has it", a.Turn)
		}
	}
}

// realTime: where one message was acknowledged before another was first sent, they stay in that order.
func (c *checker) realTime() {
	type message struct {
		place
		sent, acked time.Duration
	}
	for _, posts := range byConversation(c.Posts, func(p *Post) conversation { return conversation{p.Project, p.Phone} }) {
		known := map[place]*message{}
		var bySent, byAck []*message
		slices.SortStableFunc(posts, func(a, b *Post) int { return cmp.Compare(a.Invoke, b.Invoke) })
		for _, p := range posts {
			at := place{p.Project, p.ID}
			m, seen := known[at]
			if !seen {
				m = &message{place: at, sent: p.Invoke, acked: -1}
				known[at] = m
				bySent = append(bySent, m)
			}
			if p.Status != "" && (m.acked < 0 || p.Return < m.acked) {
				m.acked = p.Return
			}
		}
		for _, m := range bySent {
			if m.acked >= 0 && c.number[m.place] > 0 {
				byAck = append(byAck, m)
			}
		}
		slices.SortStableFunc(byAck, func(a, b *message) int { return cmp.Compare(a.acked, b.acked) })
		next, highest, holder := 0, int64(0), ""
		for _, m := range bySent {
			for ; next < len(byAck) && byAck[next].acked < m.sent; next++ {
				if n := c.number[byAck[next].place]; n > highest {
					highest, holder = n, byAck[next].id
				}
			}
			if n := c.number[m.place]; n > 0 && n < highest {
				c.violated("real time", "message %s was sent after %s had been acknowledged, and is registered before it", m.id, holder)
			}
		}
	}
}
