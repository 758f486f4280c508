package race_test

import (
	"fmt"
	"testing"
)

// abandoned is a turn whose first part is going out and whose instance has given no sign of life for longer than its lease.
func (s *scene) abandoned() (turn int64) {
	s.Helper()
	turn = s.replied(ana, "m1")
	s.pass(101)
	return turn
}

// A claim and the completion that its old owner writes after all: one of them wins.
func TestClaimMeetsCompletion(t *testing.T) {
	t.Parallel()
	t.Run("claimed first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			turn := s.abandoned()
			claimer := s.frozen(claim)
			late := s.session().start(sent, turn, 1, 1)
			late.mustWait("the late completion")
			claimer.commit()
			s.wantAnswer("the late completion", late.result(), "stale")
			s.want("sent parts", 0, `SELECT count(*) FROM deliveries WHERE state = 'sent'`)
		}, "sent_unfenced", "claim_same_attempt")
	})
	t.Run("completed first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			turn := s.abandoned()
			s.exec(`DELETE FROM deliveries WHERE part = 2`)
			owner := s.frozen(sent, turn, 1, 1)
			claimer := s.session().start(claim)
			claimer.waits()
			owner.commit()
			s.wantAnswer("the claim", claimer.result(), "nothing")
			s.want("leases on what is over", 0, `SELECT count(*) FROM turns WHERE state = 'done' AND (lease_until IS NOT NULL OR attempt > 1)`)
		}, "claim_by_id")
	})
}

// Two claims: one winner, whoever commits first.
func TestClaimMeetsClaim(t *testing.T) {
	t.Parallel()
	prove(t, func(s *scene) {
		s.abandoned()
		one := s.frozen(claim)
		two := s.session().start(claim)
		two.waits()
		one.commit()
		s.wantAnswer("the second claim", two.result(), "nothing")
		s.want("attempt", 2, `SELECT attempt FROM turns`)
	}, "claim_by_id")
}

// A claim and the sign of life of an owner that was only slow: one winner.
func TestClaimMeetsRenewal(t *testing.T) {
	t.Parallel()
	t.Run("claimed first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			turn := s.abandoned()
			claimer := s.frozen(claim)
			// It must not wait either: one locked turn would cost all others of the instance their leases.
			s.wantAnswer("the renewal beside the claim", s.session().start(renew, turn, 1).result(), "0")
			claimer.commit()
			s.wantAnswer("the renewal after the claim", s.session().start(renew, turn, 1).result(), "0")
		}, "renew_unfenced")
	})
	t.Run("renewed first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			turn := s.abandoned()
			owner := s.frozen(renew, turn, 1)
			claimer := s.session().start(claim)
			claimer.waits()
			owner.commit()
			s.wantAnswer("the claim", claimer.result(), "nothing")
			s.want("attempt", 1, `SELECT attempt FROM turns`)
		})
	})
}

// Once a second attempt has begun, every function refuses what the first one writes, and leaves no trace of it.
func TestLateWriterIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		function, sql string
		args          []any
		refusal       answer
		part          bool
	}{
		{"reply", reply, nil, "stale", false},
		{"await_reply", await, nil, "stale", false},
		{"interrupt", interrupt, nil, "stale", false},
		{"confirm", confirm, nil, "stale", false},
		{"fail", fail, []any{"agent", nil, "retry"}, "stale", false},
		{"renew", renew, nil, "0", false},
		{"hand_back", handBack, nil, "", false},
		{"send", send, []any{1}, "stale", true},
		{"sent", sent, []any{1}, "stale", true},
		{"fail", fail, []any{"delivery", 1, "dead"}, "stale", true},
		{"advance", advance, nil, "apart", false},
		{"advance", advanceSent, []any{2}, "apart", true},
	}
	for _, test := range tests {
		name := test.function
		if test.part {
			name += " of a part"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prove(t, func(s *scene) {
				s.exec(`UPDATE projects SET during_turn = 'interrupt'`)
				turn := s.begin(ana, "m1")
				if test.part {
					s.exec(reply, turn, 1)
				}
				s.pass(101)
				s.wantAnswer("the claim", s.session().ask(claim), "abandoned as 2")
				if test.function == "interrupt" {
					s.push("m2", ana)
				}
				before := s.snapshot()
				s.wantAnswer("the late writer", s.session().ask(test.sql, append([]any{turn, 1}, test.args...)...), test.refusal)
				if after := s.snapshot(); after != before {
					s.violated("the late writer left a trace:\n%s\n%s", before, after)
				}
			}, test.function+"_unfenced")
		})
	}
}

// snapshot is all of the ledger as text.
func (s *scene) snapshot() string {
	s.Helper()
	return fmt.Sprint(
		s.text(`SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]')::text FROM turns t`),
		s.text(`SELECT coalesce(jsonb_agg(to_jsonb(d) ORDER BY d.turn_id, d.part), '[]')::text FROM deliveries d`))
}
