package turn_test

// settle ends all faults and lets time pass: then everything that was accepted must come to an end.
func (m *machine) settle() {
	m.act("crash of everything", func() {
		m.acting.runs = true
		for _, p := range append([]*process(nil), m.processes...) {
			m.kill(p)
		}
	})
	m.outside.does(agentReplies, channelSends, false, false)
	// A burst that is too long for one turn takes a round for each of its turns.
	for range 10 + len(m.before.Waiting) + len(m.model.foreign) {
		if m.settled() {
			return
		}
		m.settleRound()
	}
	for _, t := range m.before.Turns {
		m.Logf("turn %d: %s %s, attempt %d, %s", t.ID, t.State, t.Stage, t.Attempt, t.Rest)
	}
	m.Fatalf("invariant 11: %d messages wait or a turn is open, long after the last fault", len(m.before.Waiting))
}

func (m *machine) settled() bool {
	for _, phone := range phones {
		if m.model.modeOf(phone) != "agent" || m.before.openTurn(phone) != nil {
			return false
		}
	}
	return len(m.before.Waiting) == 0 && len(m.model.foreign) == 0
}

func (m *machine) settleRound() {
	p := m.processes[0]
	m.act("time", func() { m.pass(takeoverSecond + 1) })
	for _, phone := range phones {
		if m.model.modeOf(phone) == "suspended" {
			m.act("resume", func() { m.resumePhone(phone, "answer") })
		}
	}
	for _, t := range m.before.in("unknown") {
		outcome := "not_done"
		if part := t.doubtful(); part > 0 && m.outside.happened(t.ID, part) > 0 {
			outcome = "done"
		}
		m.act("resolve", func() { m.resolveAs(t, outcome) })
	}
	m.act("claim", func() {
		for _, r := range m.claimBy(p, 5) {
			m.advance(r, 1000)
		}
	})
	m.act("drain", func() {
		m.drainPhones(p, phones)
		for len(p.runs) > 0 {
			m.advance(p.runs[0], 1000)
		}
	})
}
