package race_test

import (
	"strings"
	"testing"
)

// Concurrent batches that overlap in opposite orders neither deadlock nor lose nor double anything. A frozen session in the
// middle of both batches makes them meet.
func TestOverlappingBatches(t *testing.T) {
	t.Parallel()
	t.Run("conversations", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			for _, phone := range []string{ana, bia, cleo} {
				s.push("known "+phone, phone)
			}
			s.meet(
				s.frozen(`SELECT fila_lock('clinic', $1)`, bia),
				batch{[]string{"a1", "a2", "a3"}, []string{ana, bia, cleo}},
				batch{[]string{"b3", "b2", "b1"}, []string{cleo, bia, ana}})
			s.want("receipts", 9, `SELECT count(*) FROM receipts`)
			s.want("waiting messages", 9, `SELECT count(*) FROM fila_mensagens`)
			s.conserved()
		}, "push_conversations_unsorted")
	})
	t.Run("receipts", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.meet(
				s.frozen(pushOne, "m2", cleo),
				batch{[]string{"m1", "m2", "m3"}, []string{ana, ana, ana}},
				batch{[]string{"m3", "m2", "m1"}, []string{bia, bia, bia}})
			s.want("receipts", 3, `SELECT count(*) FROM receipts`)
			s.want("waiting messages", 3, `SELECT count(*) FROM fila_mensagens`)
			s.conserved()
		}, "push_receipts_unsorted")
	})
}

type batch struct{ ids, phones []string }

// meet runs the batches until they stand before the frozen session, lets it go, and repeats whoever lost a race.
func (s *scene) meet(frozen *session, batches ...batch) {
	s.Helper()
	var flights []*flight
	for _, b := range batches {
		f := s.session().start(pushMany, b.ids, b.phones)
		f.waits()
		flights = append(flights, f)
	}
	frozen.commit()
	for i, f := range flights {
		got := f.result()
		if got == "40P01" {
			s.violated("the batches deadlocked")
		}
		for got == "40001" || got == "40P01" {
			got = f.ask(pushMany, batches[i].ids, batches[i].phones)
		}
		if !strings.Contains(string(got), "queued") && !strings.Contains(string(got), "duplicate") {
			s.violated("a batch answered %q", got)
		}
	}
}

// Two pushes of one message id that are under way at once leave one receipt and one row, whoever the phone.
func TestTwins(t *testing.T) {
	t.Parallel()
	for name, phones := range map[string][2]string{"same phone": {ana, ana}, "different phones": {ana, bia}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prove(t, func(s *scene) {
				first := s.frozen(pushOne, "m1", phones[0])
				twin := s.session().start(pushOne, "m1", phones[1])
				twin.mustWait("the twin")
				first.commit()
				s.wantAnswer("the twin", twin.result(), "40001")
				s.wantAnswer("the repeated twin", s.session().ask(pushOne, "m1", phones[1]), "duplicate")
				s.want("receipts", 1, `SELECT count(*) FROM receipts`)
				s.want("waiting messages", 1, `SELECT count(*) FROM fila_mensagens`)
				s.conserved()
			}, "push_twin_unnoticed")
		})
		t.Run(name+", the first gives up", func(t *testing.T) {
			t.Parallel()
			prove(t, func(s *scene) {
				first := s.frozen(pushOne, "m1", phones[0])
				twin := s.session().start(pushOne, "m1", phones[1])
				twin.mustWait("the twin")
				first.rollback()
				s.wantAnswer("the twin", twin.result(), "queued")
				s.want("receipts", 1, `SELECT count(*) FROM receipts`)
				s.conserved()
			})
		})
	}
}

const foreign = `INSERT INTO fila_mensagens_clinic (telefone, mensagem, id_mensagem) VALUES ('+55 31 9999-0001', 'foreign', $1)`

// A row of another program, the provider's own push of the same message, and a drain: one of them is answered, once.
func TestAdoptionMeetsPushAndDrain(t *testing.T) {
	t.Parallel()
	t.Run("push first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.push("m0", ana)
			pusher := s.frozen(pushOne, "m1", bia)
			s.exec(foreign, "m1")
			sweep := s.session().start(adopt)
			sweep.mustWait("the adoption")
			pusher.commit()
			s.wantAnswer("the adoption", sweep.result(), "nothing")
			s.want("rows of the message", 1, `SELECT count(*) FROM fila_mensagens WHERE id_mensagem = 'm1'`)
			s.conserved()
		}, "adopt_twice")
	})
	t.Run("adoption first", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.exec(foreign, "m1")
			sweep := s.frozen(adopt)
			pusher := s.session().start(pushOne, "m1", ana)
			pusher.mustWait("the push")
			sweep.commit()
			s.wantAnswer("the push", pusher.result(), "40001")
			s.wantAnswer("the repeated push", s.session().ask(pushOne, "m1", ana), "duplicate")
			s.want("rows of the message", 1, `SELECT count(*) FROM fila_mensagens WHERE id_mensagem = 'm1'`)
			s.conserved()
		}, "push_twin_unnoticed")
	})
	t.Run("drain beside an adoption", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.push("m0", ana)
			s.exec(foreign, "m1")
			s.pass(window + 1)
			sweep := s.frozen(adopt)
			drain := s.session().start(drainOne, ana)
			drain.waits()
			sweep.commit()
			drain.result()
			s.session().ask(drainOne, ana)
			s.want("messages in the turn", 2, `SELECT cardinality(message_ids) FROM turns`)
			s.want("turns", 1, `SELECT count(*) FROM turns`)
			s.conserved()
		})
	})
	t.Run("two adoptions", func(t *testing.T) {
		t.Parallel()
		prove(t, func(s *scene) {
			s.exec(foreign, "m1")
			one := s.frozen(adopt)
			two := s.session().start(adopt)
			two.waits()
			one.commit()
			s.wantAnswer("the second adoption", two.result(), "nothing")
			s.want("receipts", 1, `SELECT count(*) FROM receipts`)
			s.conserved()
		})
	})
}
