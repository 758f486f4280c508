package race_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fila/internal/race"
)

// contest is two sessions that want different things of one conversation at the same moment.
type contest struct {
	rule        string // during_turn
	prepare     func(r *round)
	left, right func(r *round, one *session) answer
	// judge tells whether the left side won, and whether what came of it is as it must be.
	judge func(r *round) (left, right bool)
	fault string
}

// round is one meeting, in a conversation of its own.
type round struct {
	phone, id   string
	turn, other answer
	own         *session // for what is done before and after
	left, right answer
	leftFirst   bool
}

func (r *round) drained() answer {
	r.own.again(pushOne, r.id, r.phone)
	r.own.again(drainOne, r.phone)
	return r.own.again(`SELECT max(id)::text FROM turns WHERE phone = $1`, r.phone)
}

func (r *round) holds(sql string, args ...any) bool {
	return r.own.again(`SELECT (`+sql+`)::text`, args...) == "true"
}

// again repeats what another session was in the way of, a bounded number of times.
func (s *session) again(sql string, args ...any) (got answer) {
	for range 20 {
		if got = s.ask(sql, args...); got != "55P03" && got != "40001" {
			break
		}
	}
	return got
}

// run has both sides meet over and over, until more than the tolerated number of rounds went wrong. It answers how often each
// side won and how many rounds went wrong.
func (c *contest) run(t *testing.T, s *scene, rounds, tolerated int64) (left, right, wrong int64) {
	t.Helper()
	s.exec(`UPDATE projects SET debounce = '0', takeover_messages = 'hold', during_turn = $1`, c.rule)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var next, lefts, rights, wrongs atomic.Int64
	var workers sync.WaitGroup
	for worker := range 8 {
		one, other := s.session(), s.session()
		delays := rand.New(rand.NewPCG(seed, uint64(worker)))
		workers.Go(func() {
			for {
				n := next.Add(1)
				if n > rounds || wrongs.Load() > tolerated {
					return
				}
				r := &round{phone: strconv.FormatInt(5531900000000+n, 10), id: "m" + strconv.FormatInt(n, 10), own: one}
				c.prepare(r)
				c.meet(r, one, other, delays)
				won, ok := c.judge(r)
				if !ok && wrongs.Add(1) <= 3 {
					t.Logf("round %d: left answered %q, right %q", n, r.left, r.right)
				}
				if won {
					lefts.Add(1)
				} else {
					rights.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return lefts.Load(), rights.Load(), wrongs.Load()
}

// meet releases both sides by one barrier, each a tiny random time behind it.
func (c *contest) meet(r *round, one, other *session, delays *rand.Rand) {
	barrier := make(chan struct{})
	var order atomic.Int64
	var place int64
	waits := [2]time.Duration{time.Duration(delays.IntN(3000)) * time.Microsecond, time.Duration(delays.IntN(3000)) * time.Microsecond}
	var sides sync.WaitGroup
	sides.Go(func() {
		<-barrier
		<-time.After(waits[0])
		r.left = c.left(r, one)
		place = order.Add(1)
	})
	sides.Go(func() {
		<-barrier
		<-time.After(waits[1])
		r.right = c.right(r, other)
		order.Add(1)
	})
	close(barrier)
	sides.Wait()
	r.leftFirst = place == 1
}

func contests() map[string]contest {
	begin := func(r *round) { r.turn = r.drained() }
	confirms := func(r *round, one *session) answer { return one.again(confirm, r.turn, 1) }
	takes := func(r *round, one *session) answer { return one.again(takeover, r.phone) }
	const auditedAt = `(SELECT max(at) FROM audit WHERE phone = $1 AND action = $2)`
	return map[string]contest{
		// Proceed: never superseded. Superseded: nothing was confirmed, and the messages came back.
		"confirm and supersede": {
			rule: "supersede", prepare: begin, left: confirms, fault: "confirm_forgotten",
			right: func(r *round, one *session) answer {
				one.again(pushOne, r.id+"b", r.phone)
				return one.again(reply, r.turn, 1)
			},
			judge: func(r *round) (bool, bool) {
				won := r.left == "proceed"
				return won, (won && r.right == "send") || (r.left == "superseded" && r.right == "superseded")
			},
		},
		// Proceed: never interrupted.
		"confirm and interrupt": {
			rule: "interrupt", left: confirms, fault: "confirm_forgotten",
			prepare: func(r *round) {
				r.turn = r.drained()
				r.own.again(await, r.turn, 1)
			},
			right: func(r *round, one *session) answer {
				one.again(pushOne, r.id+"b", r.phone)
				return one.again(interrupt, r.turn, nil)
			},
			judge: func(r *round) (bool, bool) {
				won := r.left == "proceed"
				return won, (won && r.right == "stale") || (r.left == "superseded" && r.right == "superseded")
			},
		},
		// Proceed: confirmed before the person came. Whoever won, the reply is not sent.
		"confirm and takeover": {
			rule: "queue", prepare: begin, left: confirms, right: takes, fault: "confirm_beside_person",
			judge: func(r *round) (bool, bool) {
				won := r.left == "proceed"
				before := r.holds(`coalesce((SELECT confirmed_at FROM turns WHERE id = $3) <= `+auditedAt+`, false)`, r.phone, "takeover", r.turn)
				silent := r.own.again(reply, r.turn, 1) == "discarded"
				return won, silent && won == before && (won || r.left == "human")
			},
		},
		// Kept: the turn has its reply and does not die. Dead: the reply is refused. An overdue turn's claim raises no attempt.
		"callback and timeout": {
			rule: "queue", fault: "fail_overwrites_reply",
			prepare: func(r *round) {
				r.turn = r.drained()
				r.own.again(await, r.turn, 1)
			},
			left:  func(r *round, one *session) answer { return one.again(keep, r.turn, 1) },
			right: func(r *round, one *session) answer { return one.again(fail, r.turn, 1, "agent", nil, "dead") },
			judge: func(r *round) (bool, bool) {
				won := r.left == "held"
				return won, (won && r.right == "stale") || (r.left == "stale" && r.right == "dead")
			},
		},
		// One begins again, the other is refused in words.
		"redrive and redrive": {
			rule: "queue", fault: "redrive_beside_open_turn",
			prepare: func(r *round) {
				r.turn = r.drained()
				r.own.again(fail, r.turn, 1, "agent", nil, "dead")
				r.id += "b"
				r.other = r.drained()
				r.own.again(fail, r.other, 1, "agent", nil, "dead")
			},
			left:  func(r *round, one *session) answer { return one.again(redrive, r.turn) },
			right: func(r *round, one *session) answer { return one.again(redrive, r.other) },
			judge: func(r *round) (bool, bool) {
				won := r.left == "retrying"
				return won, (won && r.right == "FI409") || (r.left == "FI409" && r.right == "retrying")
			},
		},
		// Whoever comes first, the repetition is known and nothing of the phone is left.
		"erase and redelivery": {
			rule: "queue", fault: "erase_forgets_ids",
			prepare: func(r *round) { r.own.again(pushOne, r.id, r.phone) },
			left: func(r *round, one *session) answer {
				return one.again(`SELECT 'erased' FROM fila_erase('clinic', $1, 'rita')`, r.phone)
			},
			right: func(r *round, one *session) answer { return one.again(pushOne, r.id, r.phone) },
			judge: func(r *round) (bool, bool) {
				remains := r.holds(`EXISTS (SELECT FROM receipts WHERE phone = $1) OR EXISTS (SELECT FROM fila_mensagens WHERE telefone = $1)`, r.phone)
				return r.leftFirst, r.left == "erased" && r.right == "duplicate" && !remains
			},
		},
		// Sent: the intent is from before the takeover. Else the turn is discarded.
		"takeover and send": {
			rule: "queue", left: takes, fault: "send_whatever_mode",
			prepare: func(r *round) {
				r.turn = r.drained()
				r.own.again(reply, r.turn, 1)
				r.own.again(sent, r.turn, 1, 1)
			},
			right: func(r *round, one *session) answer { return one.again(send, r.turn, 1, 2) },
			judge: func(r *round) (bool, bool) {
				before := r.holds(`coalesce((SELECT intended_at FROM deliveries WHERE turn_id = $3 AND part = 2) <= `+auditedAt+`, false)`,
					r.phone, "takeover", r.turn)
				return r.right == "discarded", r.left == "human" && ((r.right == "send" && before) || (r.right == "discarded" && !before))
			},
		},
		// The same for the reply of a turn in company.
		"takeover and advance": {
			rule: "queue", left: takes, fault: "advance_whatever_mode", prepare: begin,
			right: func(r *round, one *session) answer {
				if got := one.again(advance, r.turn, 1); got != "apart" {
					return got
				}
				return one.again(reply, r.turn, 1)
			},
			judge: func(r *round) (bool, bool) {
				before := r.holds(`coalesce((SELECT intended_at FROM deliveries WHERE turn_id = $3 AND part = 1) <= `+auditedAt+`, false)`,
					r.phone, "takeover", r.turn)
				return r.right == "discarded", r.left == "human" && ((r.right == "send" && before) || (r.right == "discarded" && !before))
			},
		},
		// Whichever ends the person's time, what was held is answered by one turn.
		"release and expiry": {
			rule: "queue", fault: "release_loses_messages",
			prepare: func(r *round) {
				r.own.again(takeover, r.phone)
				r.own.again(pushOne, r.id, r.phone)
				r.own.again(`UPDATE conversations SET until = clock_timestamp() + interval '2 milliseconds' WHERE phone = $1 RETURNING phone`, r.phone)
			},
			left:  func(r *round, one *session) answer { return one.again(release, r.phone) },
			right: func(r *round, one *session) answer { return one.again(drainOne, r.phone) },
			judge: func(r *round) (bool, bool) {
				r.own.again(drainOne, r.phone)
				once := r.holds(`(SELECT count(*) = 1 FROM turns WHERE phone = $1) AND NOT EXISTS (SELECT FROM fila_mensagens WHERE telefone = $1)`, r.phone)
				return r.leftFirst, r.left == "agent" && once
			},
		},
		// Drained: before the suspension. Else the message waits.
		"suspend and drain": {
			rule: "queue", fault: "drain_whatever_mode",
			prepare: func(r *round) { r.own.again(pushOne, r.id, r.phone) },
			left:    func(r *round, one *session) answer { return one.again(suspend, r.phone) },
			right:   func(r *round, one *session) answer { return one.again(drainOne, r.phone) },
			judge: func(r *round) (bool, bool) {
				if r.right == "drained" {
					return false, r.holds(`(SELECT drained_at FROM turns WHERE phone = $3) <= `+auditedAt, r.phone, "suspend", r.phone)
				}
				waits := r.holds(`EXISTS (SELECT FROM fila_mensagens WHERE telefone = $1) AND NOT EXISTS (SELECT FROM turns WHERE phone = $1)`, r.phone)
				return true, waits && (r.right == "suspended" || r.right == "busy")
			},
		},
	}
}

// Two meet a thousand times, both orders occur, and each time one of them wins.
//
//nolint:paralleltest // one contest at a time: each has sixteen connections, and its two sides shall meet
func TestOneWins(t *testing.T) {
	rounds := int64(1000)
	if testing.Short() {
		rounds = 100
	}
	for name, c := range contests() {
		t.Run(name, func(t *testing.T) {
			s := setup(t)
			left, right, wrong := c.run(t, s, rounds, rounds)
			t.Logf("left won %d times, right %d", left, right)
			if wrong > 0 {
				t.Errorf("%d of %d rounds went wrong", wrong, rounds)
			}
			if left == 0 || right == 0 {
				t.Errorf("left won %d times, right %d: one order never occurred", left, right)
			}
			s.want("lost messages", 0, `SELECT count(*) FROM fila_lost`)
			for _, v := range s.violations {
				t.Error(v)
			}
		})
		t.Run(name+" catches "+c.fault, func(t *testing.T) {
			s := setup(t)
			if err := race.Fault(t.Context(), s.pool, c.fault); err != nil {
				t.Fatal(err)
			}
			if _, _, wrong := c.run(t, s, 1000, 0); wrong == 0 {
				t.Error("the contest holds in spite of the fault: it proves nothing")
			}
		})
	}
}
