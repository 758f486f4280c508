package history

import (
	"cmp"
	"slices"
	"time"
)

// call is a call of the agent or of the channel.
type call struct {
	Span
	turn     int64
	attempt  int // 0 for the channel, which is not told
	instance string
}

// oneTurn: never two open turns of one conversation, by the database's clock; and the calls of different turns do not overlap, by
// the receivers' clock.
func (c *checker) oneTurn() {
	for _, turns := range byConversation(c.Turns, turnConversation) {
		for i := 1; i < len(turns); i++ {
			before, t := turns[i-1], turns[i]
			if before.open() || before.FinishedAt.After(t.DrainedAt) {
				c.violated("one turn", "turn %d was drained while turn %d was open", t.ID, before.ID)
			}
		}
	}
	for _, calls := range c.calls() {
		c.apart(calls)
	}
}

func (c *checker) calls() map[conversation][]call {
	calls := map[conversation][]call{}
	for _, a := range c.Asks {
		who := conversation{a.Project, a.Phone}
		calls[who] = append(calls[who], call{a.Span, a.Turn, a.Attempt, a.Instance})
	}
	for _, s := range c.Sends {
		who := conversation{s.Project, s.Phone}
		calls[who] = append(calls[who], call{s.Span, s.Turn, 0, s.Instance})
	}
	return calls
}

// apart sweeps over one conversation's calls by their beginning. Of the calls before it is enough to remember the one that
// ended last, and the last of another turn than that one's.
func (c *checker) apart(calls []call) {
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.Invoke, b.Invoke) })
	var last, other call
	for _, now := range calls {
		for _, before := range []call{last, other} {
			if before.Return <= now.Invoke {
				continue
			}
			switch {
			case before.turn != now.turn:
				c.violated("one turn", "a call of turn %d began %s before the end of one of turn %d", now.turn, before.Return-now.Invoke, before.turn)
			case c.hit(before.instance, before.Invoke, now.Invoke):
				c.report.SameTurn++
			default:
				c.violated("one turn", "turn %d was called twice at once, %s and %s, and the first had met no outage", now.turn, before.instance, now.instance)
			}
		}
		switch {
		case now.turn == last.turn:
			if now.Return > last.Return {
				last = now
			}
		case now.Return >= last.Return:
			last, other = now, last
		case now.Return > other.Return:
			other = now
		}
	}
}

// hit says whether the instance may have lost a lease that it held between the two instants.
func (c *checker) hit(instance string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.Outages, func(o Outage) bool {
		return (o.Instance == "" || o.Instance == instance) && o.Return >= from-c.Lease && o.Invoke <= to
	})
}

// fenced: no call of an attempt begins after one of a higher attempt; the number never falls, nobody takes what is leased, and
// what has ended stays as it ended.
func (c *checker) fenced() {
	highest := map[int64]int{}
	asks := slices.Clone(c.Asks)
	slices.SortStableFunc(asks, func(a, b Ask) int { return cmp.Compare(a.Invoke, b.Invoke) })
	for _, a := range asks {
		switch {
		case a.Attempt < highest[a.Turn]:
			c.violated("fence", "attempt %d of turn %d began after attempt %d", a.Attempt, a.Turn, highest[a.Turn])
		case a.Attempt == highest[a.Turn]:
			c.violated("fence", "attempt %d of turn %d asked the agent twice", a.Attempt, a.Turn)
		}
		highest[a.Turn] = max(highest[a.Turn], a.Attempt)
	}
	for _, s := range c.Steps {
		ended := !(&Turn{State: s.From}).open()
		switch {
		case s.ToAttempt < s.FromAttempt:
			c.violated("fence", "the attempt of turn %d fell from %d to %d", s.Turn, s.FromAttempt, s.ToAttempt)
		case s.ToAttempt > s.FromAttempt && s.Leased && s.To != "discarded":
			c.violated("fence", "attempt %d of turn %d began under the lease of attempt %d", s.ToAttempt, s.Turn, s.FromAttempt)
		case ended && s.To != s.From:
			c.violated("fence", "turn %d had ended as %s and became %s", s.Turn, s.From, s.To)
		}
	}
}

// onTime: no burst becomes a turn before its window is over, by the database's clock.
func (c *checker) onTime() {
	acts := byConversation(c.Audit, func(a *Audit) conversation { return conversation{a.Project, a.Phone} })
	for i := range c.Turns {
		t := &c.Turns[i]
		fresh := c.fresh(t)
		rules, known := c.Rules[t.Project]
		if !known || len(fresh) == 0 {
			continue
		}
		first, last := fresh[0].At, fresh[len(fresh)-1].At
		due := last.Add(rules.Debounce)
		if ceiling := first.Add(rules.Ceiling); ceiling.Before(due) {
			due = ceiling
		}
		switch t.FiredBy {
		case "count":
			if len(fresh) < rules.MaxMessages && !c.rest(t) {
				c.violated("window", "turn %d was fired by count with %d messages", t.ID, len(fresh))
			}
		case "flush", "resume":
			asked := slices.ContainsFunc(acts[turnConversation(t)], func(a *Audit) bool {
				return a.Action == t.FiredBy && !a.At.After(t.DrainedAt)
			})
			if !asked {
				c.violated("window", "turn %d was fired by %s, which nobody asked for", t.ID, t.FiredBy)
			}
		default:
			if early := due.Sub(t.DrainedAt); early > clockGrain {
				c.violated("window", "turn %d (%s) was drained %s early", t.ID, t.FiredBy, early)
			}
		}
	}
}

// clockGrain is what the ledger's microseconds may add to a message's time to keep the times of a turn apart.
const clockGrain = time.Millisecond

// fresh are the messages of a turn that did not come back from one that it superseded: their window decides.
func (c *checker) fresh(t *Turn) []Registered {
	old := map[string]bool{}
	for _, id := range t.Superseded {
		if s := c.turns[id]; s != nil {
			for _, m := range s.Messages {
				old[m.ID] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(t.Messages), func(m Registered) bool { return old[m.ID] })
}

// rest says whether the turn is what an overlong burst left over.
func (c *checker) rest(t *Turn) bool {
	return slices.ContainsFunc(c.Turns, func(b Turn) bool {
		return b.Project == t.Project && b.Phone == t.Phone && b.ID < t.ID && len(b.Messages) >= c.Rules[t.Project].MaxMessages
	})
}

// ends: after the last fault everything settled, and nothing is left over.
func (c *checker) ends() {
	if !c.Settled {
		c.violated("ends", "not settled in time: %s", c.Unsettled)
	}
	for i := range c.Turns {
		if t := &c.Turns[i]; t.open() {
			c.violated("ends", "turn %d is still %s", t.ID, t.State)
		}
	}
	if n := len(c.Waiting); n > 0 {
		c.violated("ends", "%d messages still wait", n)
	}
}

// budget: a dead turn used up the attempts of the stage that it died in; the deaths of instances do not count.
func (c *checker) budget() {
	for _, t := range c.Turns {
		if t.State != "dead" {
			continue
		}
		failures := 0
		for _, stage := range t.Failures {
			if stage == t.Stage {
				failures++
			}
		}
		if failures < c.Rules[t.Project].Attempts {
			c.violated("budget", "turn %d is dead after %d failures of its %s", t.ID, failures, t.Stage)
		}
	}
}

// silence: while a person has a conversation, or it is suspended, no turn begins and nothing passes the gate, by the database's
// clock: both are decided under the conversation's lock.
func (c *checker) silence() {
	quiet := map[conversation][]interval{}
	for who, acts := range byConversation(c.Audit, func(a *Audit) conversation { return conversation{a.Project, a.Phone} }) {
		slices.SortStableFunc(acts, func(a, b *Audit) int { return a.At.Compare(b.At) })
		quiet[who] = intervals(acts)
	}
	for i := range c.Turns {
		t := &c.Turns[i]
		spans := quiet[turnConversation(t)]
		if within(spans, t.DrainedAt) {
			c.violated("silence", "turn %d began while the conversation was not the agent's", t.ID)
		}
		for _, p := range t.Parts {
			if !p.IntendedAt.IsZero() && within(spans, p.IntendedAt) {
				c.violated("silence", "part %d of turn %d passed the gate while the conversation was not the agent's", p.Number, t.ID)
			}
		}
	}
}

type interval struct{ from, to time.Time }

// intervals are the times in which the agent does not have the floor; those that never end are left open far ahead.
func intervals(acts []*Audit) []interval {
	var spans []interval
	never := time.Unix(1<<40, 0)
	end := func(at time.Time) {
		if n := len(spans); n > 0 && spans[n-1].to.After(at) {
			spans[n-1].to = at
		}
	}
	for _, a := range acts {
		switch a.Action {
		case "takeover":
			end(a.At)
			spans = append(spans, interval{a.At, a.Until})
		case "suspend":
			end(a.At)
			spans = append(spans, interval{a.At, never})
		case "release", "resume":
			end(a.At)
		}
	}
	return spans
}

func within(spans []interval, at time.Time) bool {
	i, _ := slices.BinarySearchFunc(spans, at, func(s interval, at time.Time) int { return s.to.Compare(at) })
	return i < len(spans) && at.After(spans[i].from) && at.Before(spans[i].to)
}
