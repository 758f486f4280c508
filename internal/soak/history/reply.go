package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// oneReply: one body per key at the agent and at the channel, and of all that the agent answered for one turn, only one
// answer is sent.
func (c *checker) oneReply() {
	bodies := map[string]string{}
	same := func(key, body string) {
		if first, known := bodies[key]; known && first != body {
			c.violated("one reply", "%s came with two bodies", key)
		}
		bodies[key] = body
	}
	for _, a := range c.Asks {
		same(fmt.Sprintf("key %d", a.Turn), a.Body)
	}
	for _, s := range c.Sends {
		same(fmt.Sprintf("key %d.%d", s.Turn, s.Part), s.Body)
	}
	type text struct {
		turn int64
		text string
	}
	answers := map[text]int{}
	for i, a := range c.Asks {
		for _, reply := range a.Replies {
			if _, known := answers[text{a.Turn, reply}]; !known {
				answers[text{a.Turn, reply}] = i
			}
		}
	}
	sent := map[int64]int{}
	for _, s := range c.Sends {
		answer, known := answers[text{s.Turn, s.Text}]
		if !known {
			continue // nothing that was answered: not invented says so
		}
		if first, begun := sent[s.Turn]; begun && first != answer {
			c.violated("one reply", "turn %d sent parts of two answers", s.Turn)
		}
		sent[s.Turn] = answer
	}
}

// part is one part of one turn's reply.
type part struct {
	turn   int64
	number int
}

// parts: what the patient got of a reply is a prefix of it, in order, each part once; the ledger calls sent what was got, and
// a turn done only when all of it was.
func (c *checker) parts() {
	got := map[part]time.Duration{}
	parts := map[int64][]int{}
	sends := slices.Clone(c.Sends)
	slices.SortStableFunc(sends, func(a, b Send) int { return cmp.Compare(a.Return, b.Return) })
	for _, s := range sends {
		if !s.Effect {
			continue
		}
		p := part{s.Turn, s.Part}
		if _, again := got[p]; again {
			c.violated("parts", "the patient got part %d of turn %d twice", s.Part, s.Turn)
			continue
		}
		got[p] = s.Return
		parts[s.Turn] = append(parts[s.Turn], s.Part)
	}
	for turn, numbers := range parts {
		for i, n := range numbers {
			if n != i+1 {
				c.violated("parts", "the patient got the parts of turn %d as %v", turn, numbers)
				break
			}
		}
		if c.turns[turn] == nil {
			c.violated("parts", "parts of turn %d went out, which is not in the ledger", turn)
		}
	}
	c.afterTheOneBefore(got)
	for i := range c.Turns {
		c.ledgerParts(&c.Turns[i], got)
	}
}

// afterTheOneBefore: no part is sent, with or without effect, before the patient has the one before it.
func (c *checker) afterTheOneBefore(got map[part]time.Duration) {
	for _, s := range c.Sends {
		if s.Part == 1 {
			continue
		}
		if before, known := got[part{s.Turn, s.Part - 1}]; !known || before > s.Invoke {
			c.violated("parts", "part %d of turn %d was sent before part %d had arrived", s.Part, s.Turn, s.Part-1)
		}
	}
}

func (c *checker) ledgerParts(t *Turn, got map[part]time.Duration) {
	for _, p := range t.Parts {
		_, arrived := got[part{t.ID, p.Number}]
		switch {
		case p.State == "sent" && !arrived:
			c.violated("parts", "the ledger says that part %d of turn %d was sent, the patient never got it", p.Number, t.ID)
		case t.State == "done" && p.State != "sent":
			c.violated("parts", "turn %d is done and its part %d is %s", t.ID, p.Number, p.State)
		}
	}
}
