package turn_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// overhear judges the calls that a run has just made.
func (m *machine) overhear(r *oneRun) {
	asks, sends, problems := m.outside.take()
	for _, problem := range problems {
		m.Fatalf("invariant 9: %s", problem)
	}
	for _, a := range asks {
		m.overhearAsk(r, a)
	}
	for _, s := range sends {
		m.overhearSend(s)
	}
}

func (m *machine) overhearAsk(r *oneRun, a ask) {
	if r.answered {
		m.Fatalf("invariant 9: turn %d had its reply, and its agent is asked again", a.turn)
	}
	if a.turn != r.turn || a.attempt != r.attempt {
		m.Fatalf("the agent is asked about turn %d, attempt %d, by a run of turn %d, attempt %d", a.turn, a.attempt, r.turn, r.attempt)
	}
	if m.outside.promises() {
		m.later[a.turn] = true
	}
	if m.later[a.turn] || m.erasedTurns[a.turn] {
		return // a call that was under way when the agent called back by itself, or when everything was erased
	}
	if open := m.before.openTurn(r.phone); open != nil && open.ID != a.turn && !m.waitsFor(open, a.turn) {
		m.Fatalf("invariant 6: the agent is asked about turn %d while turn %d is open", a.turn, open.ID)
	}
	m.checkOverlap(r)
}

// waitsFor tells whether an open turn is a redriven one that is not asked about before the discarded turn's process has hung up.
// That process may have been on its way to its call when its turn was discarded.
func (m *machine) waitsFor(open *turnRow, discarded int64) bool {
	t := m.before.turn(discarded)
	return open.State == "retrying" && t != nil && t.State == "discarded"
}

// checkOverlap: no process that is alive still asks about another turn of the conversation. One that was frozen for longer than
// its lease may: nobody can hang up for it.
func (m *machine) checkOverlap(r *oneRun) {
	for _, other := range m.runs() {
		if other.call == nil || other.phone != r.phone || other.turn == r.turn || m.model.now-other.leased > leaseSeconds {
			continue
		}
		timer := time.NewTimer(patience)
		select {
		case <-other.call.gone:
			timer.Stop()
			m.event("hung up before the next turn")
		case <-timer.C:
			m.Fatalf("invariant 6: the agent is asked about turn %d while it is asked about turn %d", r.turn, other.turn)
		}
	}
}

func (m *machine) overhearSend(s sending) {
	n := m.outside.happened(s.turn, s.part)
	switch {
	case n > 1 && (s.part == 0 || m.rules.deliveryUnknown != "retry"):
		m.Fatalf("invariant 10: part %s went out %d times", s.key(), n)
	case s.part > 1 && m.outside.happened(s.turn, s.part-1) == 0:
		m.Fatalf("invariant 10: part %s went out before its predecessor", s.key())
	case m.erasedTurns[s.turn]:
		if !m.leftBehind[s.key()] {
			m.Fatalf("invariant 16: part %s of an erased turn went out", s.key())
		}
		delete(m.leftBehind, s.key())
		return
	}
	if onTheirWay := m.silenced[s.turn]; onTheirWay != nil {
		if !onTheirWay[s.key()] {
			m.Fatalf("invariant 14: part %s went out after a person had taken its conversation over", s.key())
		}
		delete(onTheirWay, s.key())
	}
	if m.acting.modes[s.phone] != "agent" {
		if !m.allowed[s.phone][s.key()] {
			m.Fatalf("invariant 14: part %s went out in a conversation that is %s", s.key(), m.acting.modes[s.phone])
		}
		delete(m.allowed[s.phone], s.key())
		m.event("on its way in silence")
	}
	m.texts[s.key()] = m.same("invariant 2: text of part "+s.key(), m.texts[s.key()], s.text)
}

// same returns what must not have changed, once it is known.
func (m *machine) same(what, before, now string) string {
	if before != "" && before != now {
		m.Fatalf("%s was %q, is %q", what, before, now)
	}
	return now
}

// check holds the database against the model and the invariants.
func (m *machine) check(action string) {
	after := m.look()
	m.checkLedger(after)
	for i := range after.Turns {
		m.checkTurn(&after.Turns[i])
	}
	m.checkStale(after)
	m.follow(after)
	for _, phone := range phones {
		m.checkConversation(phone, after)
	}
	m.checkTexts(after)
	if m.acting.audited && after.Audited <= m.before.Audited {
		m.Fatalf("invariant 13: %s left no audit row", action)
	}
	m.before = after
}

func (m *machine) checkLedger(after *picture) {
	if after.Lost > 0 {
		m.Fatalf("invariant 1: fila_lost has %d rows", after.Lost)
	}
	if after.Orphans > 0 {
		m.Fatalf("invariant 16: %d parts without their turn", after.Orphans)
	}
	open := map[string]int64{}
	for _, t := range after.Turns {
		if m.erasedTurns[t.ID] {
			m.Fatalf("invariant 16: turn %d was erased and is there", t.ID)
		}
		if !t.Open {
			continue
		}
		if other, ok := open[t.Phone]; ok {
			m.Fatalf("invariant 6: turns %d and %d are open", other, t.ID)
		}
		open[t.Phone] = t.ID
	}
}

func (m *machine) checkTurn(t *turnRow) {
	if !slices.IsSorted(t.Numbers) {
		m.Fatalf("invariant 4: turn %d has the numbers %v", t.ID, t.Numbers)
	}
	if t.Reply != nil {
		m.replies[t.ID] = m.same(fmt.Sprintf("invariant 9: reply of turn %d", t.ID), m.replies[t.ID], *t.Reply)
	}
	m.checkParts(t)
	before := m.before.turn(t.ID)
	if before == nil {
		return
	}
	if t.Attempt < before.Attempt {
		m.Fatalf("invariant 7: turn %d went from attempt %d to %d", t.ID, before.Attempt, t.Attempt)
	}
	if before.State == t.State {
		return
	}
	m.event("state " + t.State)
	switch {
	case before.State == "dead" && (m.acting.redriven == t.ID || t.State == "discarded"):
	case !before.Open:
		m.Fatalf("turn %d had ended %s and is %s", t.ID, before.State, t.State)
	case t.State == "superseded" && before.Confirmed:
		m.Fatalf("turn %d was confirmed and is superseded", t.ID)
	case before.State == "unknown" && m.moving != nil && m.moving.turn == t.ID && !m.acting.audited:
		m.reconciled(before, t)
	}
}

// reconciled notes what an answer to a question was.
func (m *machine) reconciled(before, now *turnRow) {
	known := now.Answered
	if part := before.doubtful(); part > 0 {
		known = now.part(part).State == "sent"
	}
	m.event(fmt.Sprintf("reconciled: %s, done: %t", before.Stage, known))
}

// checkParts: what was delivered is a prefix, and what is said to be delivered has left.
func (m *machine) checkParts(t *turnRow) {
	sent := true
	for _, p := range t.Parts {
		key := partKey(t.ID, p.Part)
		m.texts[key] = m.same("invariant 2: text of part "+key, m.texts[key], p.Text)
		if p.Part == 0 {
			continue
		}
		if p.State == "sent" && !sent {
			m.Fatalf("invariant 10: part %s is sent and its predecessor is not", key)
		}
		if p.State == "sent" && m.outside.happened(t.ID, p.Part) == 0 {
			m.Fatalf("invariant 10: part %s is sent and never left", key)
		}
		sent = p.State == "sent"
	}
}

// checkStale: what moves under a lower attempt than the turn's leaves no trace.
func (m *machine) checkStale(after *picture) {
	before := m.acting.stale
	if before == nil {
		return
	}
	if now := after.turn(before.ID); now != nil && string(now.Rest) != string(before.Rest) {
		m.Fatalf("invariant 7: a late writer changed turn %d:\n%s\n%s", before.ID, before.Rest, now.Rest)
	}
}

// follow carries into the model what turns did by themselves: superseded, handed off, dead.
func (m *machine) follow(after *picture) {
	for i := range after.Turns {
		t := &after.Turns[i]
		if before := m.before.turn(t.ID); t.State == "superseded" && (before == nil || before.State != "superseded") {
			m.model.cameBack(t.Phone, t.Texts)
		}
	}
	if !m.acting.runs {
		return
	}
	for _, phone := range phones {
		mode, until := after.mode(phone)
		if mode == m.model.modeOf(phone) {
			if until != nil {
				m.model.conversation(phone).until = m.model.now + int(*until+0.999)
			}
			continue
		}
		if after.Audited <= m.before.Audited {
			m.Fatalf("invariant 13: a conversation became %s without an audit row", mode)
		}
		m.event("by itself: " + mode)
		switch {
		case mode == "human" && m.model.modeOf(phone) == "agent":
			m.model.takeover(phone, m.model.now+int(*until+0.999), m.ignores())
		case mode == "suspended" && m.model.modeOf(phone) == "agent":
			m.model.suspend(phone)
		default:
			m.Fatalf("a conversation that was %s became %s by itself", m.model.modeOf(phone), mode)
		}
	}
}

func (m *machine) checkConversation(phone string, after *picture) {
	mode, _ := after.mode(phone)
	if want := m.model.modeOf(phone); mode != want {
		m.Fatalf("a conversation is %s, want %s", mode, want)
	}
	c := m.model.conversation(phone)
	if got, want := strings.Join(after.waiting(phone), " "), strings.Join(textsOf(c.waiting), " "); got != want {
		m.Fatalf("what waits is %q, want %q", got, want)
	}
	var placed []string
	for _, t := range after.Turns {
		if t.Phone == phone && t.State != "superseded" {
			placed = append(placed, t.Texts...)
		}
	}
	placed = append(placed, after.waiting(phone)...)
	m.checkOrder(placed, textsOf(c.order))
	m.checkSilence(phone, mode, after)
	if open := after.openTurn(phone); mode == "human" && open != nil && m.silenced[open.ID] == nil {
		m.silenced[open.ID] = map[string]bool{}
		m.inFlight(m.silenced[open.ID], open)
		m.event("silenced in state " + open.State)
	}
}

// checkOrder: what turns and queue hold is what was accepted, in that order, but for turns that a person has begun again behind
// later ones.
func (m *machine) checkOrder(got, want []string) {
	again := func(text string) bool { return m.redriven[text] }
	late, due := slices.DeleteFunc(slices.Clone(got), again), slices.DeleteFunc(slices.Clone(want), again)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(late, due) || !slices.Equal(got, want) {
		m.Fatalf("invariants 1, 3, 4: turns and queue hold %q, want %q", late, due)
	}
}

// checkSilence notes what is on its way at the moment in which a conversation falls silent.
func (m *machine) checkSilence(phone, mode string, after *picture) {
	if mode == "agent" || mode == m.acting.modes[phone] {
		return
	}
	m.allowed[phone] = map[string]bool{}
	for i := range after.Turns {
		if after.Turns[i].Phone == phone {
			m.inFlight(m.allowed[phone], &after.Turns[i])
		}
	}
}

// inFlight adds the parts of the turn that are on their way.
func (m *machine) inFlight(to map[string]bool, t *turnRow) {
	for _, p := range t.Parts {
		// What was on its way when its turn was discarded is in doubt until its result comes.
		if p.State == "sending" || t.State == "discarded" && p.State == "unknown" {
			to[partKey(t.ID, p.Part)] = true
		}
	}
	for _, r := range m.runs() {
		if r.turn == t.ID && (r.point == "after fallback" || r.point == "before last word") {
			to[partKey(t.ID, 0)] = true
		}
	}
}

// checkTexts: nothing is in the database that nobody wrote, or that was erased.
func (m *machine) checkTexts(after *picture) {
	look := func(text string) {
		if fate, ok := m.model.fate[text]; !ok || fate == erased || fate == dropped {
			m.Fatalf("invariants 2, 16: %q is in the database, and its fate is %q", text, fate)
		}
	}
	for _, t := range after.Turns {
		for _, text := range t.Texts {
			look(text)
		}
	}
	for _, w := range after.Waiting {
		look(w.Text)
	}
}

// forgotten: no table holds an erased phone.
func (m *machine) forgotten(phone string) {
	var left int
	err := m.pool.QueryRow(m.ctx, `SELECT
		(SELECT count(*) FROM fila_mensagens WHERE fila_key(telefone, 'BR') = $1) + (SELECT count(*) FROM turns WHERE phone = $1) +
		(SELECT count(*) FROM receipts WHERE phone = $1) + (SELECT count(*) FROM conversations WHERE phone = $1) +
		(SELECT count(*) FROM wakeups WHERE phone = $1) + (SELECT count(*) FROM audit WHERE phone = $1)`, phone).Scan(&left)
	if err != nil {
		m.Fatalf("look for an erased phone: %v", err)
	}
	if left > 0 {
		m.Fatalf("invariant 16: %d rows hold an erased phone", left)
	}
}
