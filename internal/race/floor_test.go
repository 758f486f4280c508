package race_test

import "testing"

// A takeover and the gate before a part: what the gate has let through before is on its way; after the takeover has answered
// nothing is let through.
func TestTakeoverMeetsSend(t *testing.T) {
	t.Parallel()
	t.Run("gate first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			turn := s.replied(ana, "m1")
			s.exec(sent, turn, 1, 1)
			gate := s.frozen(send, turn, 1, 2)
			person := s.session().start(takeover, ana)
			person.mustWait("the takeover")
			gate.commit()
			s.wantAnswer("the takeover", person.result(), "human")
			s.want("parts on their way", 1, `SELECT count(*) FROM deliveries WHERE state = 'sending'`)
		})
	})
	t.Run("takeover first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			turn := s.replied(ana, "m1")
			s.exec(sent, turn, 1, 1)
			person := s.frozen(takeover, ana)
			gate := s.session().start(send, turn, 1, 2)
			gate.mustWait("the gate")
			person.commit()
			s.wantAnswer("the gate", gate.result(), "discarded")
			s.want("parts on their way", 0, `SELECT count(*) FROM deliveries WHERE state = 'sending'`)
			s.want("discarded turns", 1, `SELECT count(*) FROM turns WHERE state = 'discarded' AND reason = 'human'`)
		}, "send_whatever_mode")
	})
	t.Run("takeover before the reply", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			turn := s.begin(ana, "m1")
			person := s.frozen(takeover, ana)
			gate := s.session().start(reply, turn, 1)
			gate.mustWait("the gate")
			person.commit()
			s.wantAnswer("the gate", gate.result(), "discarded")
			s.want("parts", 0, `SELECT count(*) FROM deliveries`)
		}, "gate_whatever_mode")
	})
}

// Two redrives in one conversation: one begins, the other is refused in words and leaves no audit row.
func TestRedriveMeetsRedrive(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		name := map[bool]string{true: "one turn", false: "two turns"}[same]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults := []string{"redrive_beside_open_turn"}
			if same {
				faults = nil // the turn's own state refuses the second one
			}
			prove(t, func(s *scene) {
				one := s.buried(ana, "m1")
				other := one
				if !same {
					other = s.buried(ana, "m2")
				}
				first := s.frozen(redrive, one)
				second := s.session().start(redrive, other)
				second.mustWait("the second redrive")
				first.commit()
				s.wantAnswer("the second redrive", second.result(), "FI409")
				s.want("open turns", 1, `SELECT count(*) FROM turns WHERE open`)
				s.want("audit rows", 1, `SELECT count(*) FROM audit WHERE action = 'redrive'`)
				s.conserved()
			}, faults...)
		})
	}
}

// An agent asks before an effect while a newer message arrives: either the effect is confirmed and the turn is answered, or
// it is superseded and nothing was confirmed.
func TestConfirmMeetsSupersede(t *testing.T) {
	t.Parallel()
	scenarios := func(t *testing.T, scenario func(*scene, int64), faults ...string) {
		t.Helper()
		prove(t, func(s *scene) {
			s.exec(`UPDATE projects SET during_turn = 'supersede'`)
			scenario(s, s.begin(ana, "m1"))
			s.conserved()
		}, faults...)
	}
	t.Run("confirmed first", func(t *testing.T) {
		t.Parallel()
		scenarios(t, func(s *scene, turn int64) {
			agent := s.frozen(confirm, turn, 1)
			pusher := s.session().start(pushOne, "m2", ana)
			pusher.mustWait("the push")
			agent.commit()
			s.wantAnswer("the push", pusher.result(), "queued")
			s.wantAnswer("the gate", s.session().ask(reply, turn, 1), "send")
		}, "confirm_without_lock")
	})
	t.Run("newer message first", func(t *testing.T) {
		t.Parallel()
		scenarios(t, func(s *scene, turn int64) {
			pusher := s.frozen(pushOne, "m2", ana)
			agent := s.session().start(confirm, turn, 1)
			agent.mustWait("the confirmation")
			pusher.commit()
			s.wantAnswer("the confirmation", agent.result(), "superseded")
			s.wantAnswer("the gate", s.session().ask(reply, turn, 1), "superseded")
			s.want("messages that came back", 2, `SELECT count(*) FROM fila_mensagens`)
		}, "confirm_without_lock")
	})
	t.Run("superseded first", func(t *testing.T) {
		t.Parallel()
		scenarios(t, func(s *scene, turn int64) {
			s.push("m2", ana)
			gate := s.frozen(reply, turn, 1)
			agent := s.session().start(confirm, turn, 1)
			agent.mustWait("the confirmation")
			gate.commit()
			s.wantAnswer("the confirmation", agent.result(), "superseded")
		})
	})
}

// An erasure and a push: what was accepted before is gone, what comes behind is a new message of a new conversation.
func TestEraseMeetsPush(t *testing.T) {
	t.Parallel()
	const erase = `SELECT fila_erase('clinic', $1, 'rita')::text`
	t.Run("pushed first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.push("m0", ana)
			pusher := s.frozen(pushOne, "m1", ana)
			person := s.session().start(erase, ana)
			person.mustWait("the erasure")
			pusher.commit()
			person.result()
			s.want("receipts", 0, `SELECT count(*) FROM receipts`)
			s.wantAnswer("a late repetition", s.session().ask(pushOne, "m1", ana), "duplicate")
			s.conserved()
		})
	})
	t.Run("erased first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.push("m0", ana)
			person := s.frozen(erase, ana)
			pusher := s.session().start(pushOne, "m1", ana)
			pusher.mustWait("the push")
			person.commit()
			s.wantAnswer("the push", pusher.result(), "queued")
			s.want("receipts", 1, `SELECT count(*) FROM receipts`)
			s.conserved()
		})
	})
	t.Run("a row of another program", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.push("m0", bia)
			s.exec(foreign, "m1")
			held := s.frozen(`SELECT fila_lock('clinic', $1)`, bia)
			s.session().ask(erase, ana)
			held.rollback()
			s.want("rows left", 1, `SELECT count(*) FROM fila_mensagens`)
			s.wantAnswer("a late repetition", s.session().ask(pushOne, "m1", ana), "duplicate")
			s.conserved()
		})
	})
}
