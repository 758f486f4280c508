package race_test

import "testing"

// A drain leaves the messages alone as long as a turn of the conversation is open.
func TestDrainKeepsMessagesBehindAnOpenTurn(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.begin(ana, "m1")
		s.push("m2", ana)
		s.pass(window + 1)
		s.wantAnswer("the drain", s.session().ask(drainOne, ana), "open")
		s.want("waiting messages", 1, `SELECT count(*) FROM fila_mensagens`)
		s.conserved()
	}, "drain_beside_open_turn")
}

// A drain that loses the race for the one open turn leaves nothing behind. No function of ours lets it come that far, so
// somebody opens the turn by hand.
func TestDrainThatLosesTheIndexAbortsWhole(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.push("m1", ana)
		s.pass(window + 1)
		byHand := s.frozen(`INSERT INTO turns (project, phone, state, fired_by, address, session_id, message_ids, messages, text, first_at, due_at)
			VALUES ('clinic', $1, 'retrying', 'quiet', $1, $1, '{-1}', '[]', '', now(), now())`, ana)
		drain := s.session().start(drainOne, ana)
		drain.mustWait("the drain")
		byHand.commit()
		s.wantAnswer("the drain", drain.result(), "23505")
		s.want("waiting messages", 1, `SELECT count(*) FROM fila_mensagens`)
		s.conserved()
	}, "drain_do_nothing")
}

// A message that is committed while a drain waits or runs starts the window again: the burst is not drained without it.
func TestDrainSeesWhatWasCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.push("m1", ana)
		s.pass(window + 1)
		pusher := s.frozen(pushOne, "m2", ana)
		drain := s.session().start(drainOne, ana)
		drain.waits()
		pusher.commit()
		s.wantAnswer("the drain beside a fresh message", drain.result(), "busy")
		s.wantAnswer("the next drain", s.session().ask(drainOne, ana), "early")
		s.want("turns", 0, `SELECT count(*) FROM turns`)
		s.conserved()
	}, "drain_in_one_statement")
}

// Within a conversation the order of numbers is the order of commits, also when one pusher is frozen before its commit.
func TestNumbersFollowCommits(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.begin(ana, "m0")
		s.exec(fail, 1, 1, "agent", nil, "dead")
		slow := s.frozen(pushOne, "m1", ana)
		quick := s.session().start(pushOne, "m2", ana)
		quick.mustWait("the second push")
		s.pass(window + 1)
		s.session().ask(drainOne, ana)
		slow.commit()
		s.wantAnswer("the second push", quick.result(), "queued")
		s.pass(window + 1)
		s.session().ask(drainOne, ana)
		if got := s.text(`SELECT string_agg(m ->> 'id', ' ' ORDER BY t.id, place)
			FROM turns t, jsonb_array_elements(t.messages) WITH ORDINALITY AS e (m, place)`); got != "m0 m1 m2" {
			s.violated("turns hold %q, want the order of the commits", got)
		}
		s.conserved()
	}, "push_without_lock")
}

// A frozen session that holds one conversation stalls the drain of no other.
func TestFrozenSessionStallsNoOtherDrain(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.push("m1", ana)
		s.push("m2", bia)
		s.pass(window + 1)
		s.frozen(`SELECT fila_lock('clinic', $1)`, ana)
		drain := s.session().start(drainMany, []string{ana, bia})
		if drain.waits() {
			s.violated("the drain waits for a frozen session")
			return
		}
		s.wantAnswer("the drain", drain.result(), "busy drained")
		s.conserved()
	}, "drain_waits")
}

// The same where another program has inserted a row for the held conversation: taking it in must not wait either.
func TestFrozenSessionStallsNoAdoption(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.push("m1", ana)
		s.push("m2", bia)
		s.exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem, id_mensagem) VALUES ($1, 'foreign', 'f1'), ($2, 'foreign', 'f2')`, ana, bia)
		s.pass(window + 1)
		frozen := s.frozen(`SELECT fila_lock('clinic', $1)`, ana)
		drain := s.session().start(drainMany, []string{ana, bia})
		if drain.waits() {
			s.violated("the drain waits for a frozen session")
			return
		}
		s.wantAnswer("the drain", drain.result(), "busy drained")
		frozen.rollback()
		s.wantAnswer("the next drain", s.session().ask(drainOne, ana), "drained")
		s.want("receipts", 4, `SELECT count(*) FROM receipts`)
		s.conserved()
	}, "drain_waits")
}

// A drain under way and a suspension: the one that comes second sees what the first has done.
func TestSuspendMeetsDrain(t *testing.T) {
	t.Parallel()
	t.Run("suspended first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.push("m1", ana)
			s.pass(window + 1)
			person := s.frozen(suspend, ana)
			s.wantAnswer("the drain beside the suspension", s.session().ask(drainOne, ana), "busy")
			person.commit()
			s.wantAnswer("the drain behind it", s.session().ask(drainOne, ana), "suspended")
			s.want("turns", 0, `SELECT count(*) FROM turns`)
		}, "drain_whatever_mode")
	})
	t.Run("drained first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.push("m1", ana)
			s.pass(window + 1)
			drain := s.frozen(drainOne, ana)
			person := s.session().start(suspend, ana)
			person.mustWait("the suspension")
			drain.commit()
			s.wantAnswer("the suspension", person.result(), "suspended")
			turn := int64(s.count(`SELECT id FROM turns`))
			s.wantAnswer("the gate", s.session().ask(reply, turn, 1), "held")
			s.want("parts on their way", 0, `SELECT count(*) FROM deliveries WHERE attempts > 0`)
		}, "gate_whatever_mode")
	})
}
