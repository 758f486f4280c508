package race_test

import (
	"fmt"
	"testing"
)

// While a call runs of a turn that has ended, no other turn of its conversation begins: until whoever made the call has hung up, or
// his lease is over.
func TestNoTurnBesideACall(t *testing.T) {
	t.Parallel()
	ends := map[string]string{
		"discarded": `SELECT fila_discard(max(id), 'rita', 'a test') FROM turns WHERE phone = $1`,
		"erased":    `SELECT fila_erase('clinic', $1, 'rita')`,
		"discarded, then erased": `SELECT fila_erase('clinic', phone, 'rita')
			FROM (SELECT phone, fila_discard(id, 'rita', 'a test') FROM turns WHERE phone = $1 OFFSET 0) AS discarded`,
	}
	for name, end := range ends {
		for how, free := range map[string]func(*scene, int64){
			"hung up":    func(s *scene, turn int64) { s.exec(hungUpOf, turn, 1) },
			"lease over": func(s *scene, _ int64) { s.pass(200) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				prove(t, func(s *scene) {
					turn := s.begin(ana, "m1")
					s.exec(end, ana)
					s.push("m2", ana)
					s.exec(`SELECT fila_flush('clinic', $1, 'rita')`, ana)
					one := s.session()
					s.wantAnswer("the drain beside the call", one.ask(drainOne, ana), "hanging_up")
					s.exec(hungUpOf, turn, 0)
					s.wantAnswer("the drain after an older attempt's end", one.ask(drainOne, ana), "hanging_up")
					free(s, turn)
					s.wantAnswer("the drain after the call", one.ask(drainOne, ana), "drained")
				}, "end_without_lease")
			})
		}
	}
}

const hungUpOf = `SELECT fila_hung_up($1, $2)`

// Once its lease is over nothing is left of an erased turn's call but what the next sweep of old rows takes.
func TestErasedCallIsForgotten(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.begin(ana, "m1")
		s.exec(`SELECT fila_erase('clinic', $1, 'rita')`, ana)
		s.exec(`SELECT fila_forget_erased(100)`)
		s.want("calls while the lease runs", 1, `SELECT count(*) FROM hanging_calls`)
		s.pass(200)
		s.exec(`SELECT fila_forget_erased(100)`)
		s.want("calls after it", 0, `SELECT count(*) FROM hanging_calls`)
	})
}

// A part that is on its way when its turn is discarded: nobody knows of it, until its result comes.
func TestPartOfADiscardedTurn(t *testing.T) {
	t.Parallel()
	const stateOf = `SELECT state || coalesce(' ' || provider_id, '') FROM deliveries WHERE part = 1`
	tests := map[string]func(*scene, int64){
		"by hand": func(s *scene, turn int64) { s.exec(`SELECT fila_discard($1, 'rita', 'a test')`, turn) },
		"at resume": func(s *scene, _ int64) {
			s.exec(suspendBefore, ana)
			s.exec(resumeDiscard, ana)
		},
		"by the claim of a silenced turn": func(s *scene, _ int64) {
			s.exec(takeover, ana)
			s.exec(release, ana)
			s.pass(200)
			s.wantAnswer("the claim", s.session().ask(claim), "abandoned as 2")
		},
	}
	for name, discard := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prove(t, func(s *scene) {
				turn := s.replied(ana, "m1")
				discard(s, turn)
				s.want("discarded turns", 1, `SELECT count(*) FROM turns WHERE state = 'discarded'`)
				s.wantAnswer("the part", s.session().ask(stateOf), "unknown")
				s.wantAnswer("a stranger's result", s.session().ask(sent, turn, 0, 1), "stale")
				s.wantAnswer("the part", s.session().ask(stateOf), "unknown")
				s.wantAnswer("the result", s.session().ask(sent, turn, 1, 1), "stale")
				s.wantAnswer("the part", s.session().ask(stateOf), "sent p")
			})
		})
	}
}

// The last word of a dead turn is not said once somebody has discarded the turn.
func TestDiscardSilencesTheLastWord(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.exec(`UPDATE projects SET fallback_text = 'desculpe'`)
		turn := s.buried(ana, "m1")
		s.want("last words to be said", 1, `SELECT count(*) FROM deliveries WHERE part = 0 AND state = 'sending'`)
		s.exec(`SELECT fila_discard($1, 'rita', 'a test')`, turn)
		s.want("last words to be said after", 0, `SELECT count(*) FROM deliveries WHERE part = 0 AND state = 'sending'`)
	})
}

// Who acts, and why, is something that can be read.
func TestReasonsAreReadable(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.push("m1", ana)
		one := s.session()
		const act = `SELECT fila_suspend('clinic', $1, $2, $3)`
		for _, nothing := range []string{"", " ", "\t\n", "\u00a0", "\u2003\u3000 "} {
			s.wantAnswer("nobody", one.ask(act, ana, nothing, "checking"), "FI422")
			s.wantAnswer("no reason", one.ask(act, ana, "rita", nothing), "FI422")
		}
		s.wantAnswer("a reason of 1000 characters", one.ask(`SELECT fila_suspend('clinic', $1, 'rita', repeat('é', 1000))`, ana), "suspended")
		s.wantAnswer("a reason of 1001", one.ask(`SELECT fila_suspend('clinic', $1, 'rita', repeat('é', 1001))`, ana), "FI422")
		s.wantAnswer("a takeover's reason of 1001", one.ask(`SELECT fila_takeover('clinic', $1, 1, 'rita', repeat('é', 1001))`, ana), "FI422")
		s.wantAnswer("a takeover of no time", one.ask(`SELECT fila_takeover('clinic', $1, 1e-300, 'rita', NULL)`, ana), "FI422")
	})
}

// However many turns a conversation has had since: a turn that was begun again is an old one, and its call counts all the same.
func TestNoTurnBesideAnOldTurnsCall(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		old := s.buried(ana, "m0")
		for n := range 12 {
			s.buried(ana, fmt.Sprint("n", n))
		}
		one := s.session()
		s.wantAnswer("the redrive", one.ask(redrive, old), "retrying")
		s.wantAnswer("the claim", one.ask(claim), "retry as 2")
		s.exec(`SELECT fila_discard($1, 'rita', 'a test')`, old)
		s.push("m9", ana)
		s.exec(`SELECT fila_flush('clinic', $1, 'rita')`, ana)
		s.wantAnswer("the drain beside the call", one.ask(drainOne, ana), "hanging_up")
		s.exec(hungUpOf, old, 2)
		s.wantAnswer("the drain after the call", one.ask(drainOne, ana), "drained")
	}, "end_without_lease")
}

// The last word is said again at a later death only if it certainly was not said at the first.
func TestLastWordAtALaterDeath(t *testing.T) {
	t.Parallel()
	for state, again := range map[string]int{"failed": 1, "unknown": 0, "sent": 0} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			prove(t, func(s *scene) {
				s.exec(`UPDATE projects SET fallback_text = 'desculpe'`)
				turn := s.buried(ana, "m1")
				s.exec(`SELECT fila_fallback_sent($1, $2, NULL)`, turn, state)
				one := s.session()
				s.wantAnswer("the redrive", one.ask(redrive, turn), "retrying")
				s.wantAnswer("the claim", one.ask(claim), "retry as 2")
				s.exec(fail, turn, 2, "agent", nil, "dead")
				s.want("last words to be said", again, `SELECT count(*) FROM deliveries WHERE part = 0 AND state = 'sending'`)
			})
		})
	}
}
