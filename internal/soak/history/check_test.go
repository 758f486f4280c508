package history_test

import (
	"slices"
	"testing"
	"time"

	"fila/internal/soak/history"
)

const (
	clinic = "clinic"
	ana    = "5531999990001"
	bia    = "5531999990002"
	ms     = time.Millisecond
)

func span(from, to int) history.Span {
	return history.Span{Invoke: time.Duration(from) * ms, Return: time.Duration(to) * ms}
}

// clock is the database's, which has nothing to do with the observer's.
func clock(after int) time.Time {
	return time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC).Add(time.Duration(after) * ms)
}

func post(id string, from, to int, status string) history.Post {
	return history.Post{Span: span(from, to), Project: clinic, Phone: ana, ID: id, Text: "text " + id, Status: status}
}

func registered(id string, at int) history.Registered {
	return history.Registered{ID: id, Text: "text " + id, At: clock(at)}
}

func message(id string) history.Message { return history.Message{ID: id, Text: "text " + id} }

// good is a run in which Ana writes a and b, which are answered in two parts by turn 1; the agent's first answer is lost when its
// instance dies. Then she writes c, which turn 2 answers; d supersedes it, and turn 3 answers both.
func good() *history.History {
	h := &history.History{
		Rules:   map[string]history.Rules{clinic: {Debounce: 400 * ms, Ceiling: 1200 * ms, MaxMessages: 3, Attempts: 3, Once: true}},
		Lease:   2 * time.Second,
		Settled: true,
		Posts: []history.Post{
			post("a", 0, 5, "queued"), post("b", 100, 150, ""), post("b", 160, 165, "duplicate"), post("a", 170, 175, "duplicate"),
			post("c", 5000, 5005, "queued"), post("d", 5600, 5605, "queued"),
		},
		Receipts: []history.Receipt{
			{Number: 11, Project: clinic, Phone: ana, ID: "a", Status: "queued"},
			{Number: 12, Project: clinic, Phone: ana, ID: "b", Status: "queued"},
			{Number: 13, Project: clinic, Phone: ana, ID: "c", Status: "queued"},
			{Number: 14, Project: clinic, Phone: ana, ID: "d", Status: "queued"},
		},
		Outages: []history.Outage{{Instance: "one", Span: span(700, 700)}},
	}
	h.Asks = []history.Ask{
		ask(1, 1, "one", 600, 900, nil, "a", "b"),
		ask(1, 2, "two", 2600, 2700, []string{"hello", "again"}, "a", "b"),
		ask(2, 1, "two", 5500, 5700, []string{"never said"}, "c"),
		ask(3, 1, "one", 6100, 6200, []string{"both"}, "c", "d"),
	}
	h.Sends = []history.Send{
		send(1, 1, 2, 2710, 2750, "hello"), send(1, 2, 2, 2760, 2800, "again"), send(3, 1, 1, 6210, 6300, "both"),
	}
	h.Turns = []history.Turn{
		turn(1, "done", 600, 2810, []int64{11, 12}, registered("a", 0), registered("b", 120)),
		turn(2, "superseded", 5450, 5710, []int64{13}, registered("c", 5000)),
		turn(3, "done", 6050, 6310, []int64{13, 14}, registered("c", 5000), registered("d", 5600)),
	}
	h.Turns[0].Parts = []history.Part{
		{Number: 1, State: "sent", Text: "hello", IntendedAt: clock(2700)}, {Number: 2, State: "sent", Text: "again", IntendedAt: clock(2750)},
	}
	h.Turns[1].SupersededBy = 3
	h.Turns[2].Superseded = []int64{2}
	h.Turns[2].Parts = []history.Part{{Number: 1, State: "sent", Text: "both", IntendedAt: clock(6205)}}
	h.Steps = []history.Step{
		{Turn: 1, From: "running", To: "running", FromAttempt: 1, ToAttempt: 2},
		{Turn: 1, From: "running", To: "done", FromAttempt: 2, ToAttempt: 2, Leased: true},
		{Turn: 2, From: "superseded", To: "superseded", FromAttempt: 1, ToAttempt: 1},
	}
	return h
}

func ask(turn int64, attempt int, instance string, from, to int, replies []string, ids ...string) history.Ask {
	a := history.Ask{
		Span: span(from, to), Project: clinic, Phone: ana, Turn: turn, Attempt: attempt, Instance: instance, Replies: replies,
		Body: "body of " + ids[0] + ids[len(ids)-1],
	}
	for _, id := range ids {
		a.Messages = append(a.Messages, message(id))
	}
	return a
}

func send(turn int64, part, parts, from, to int, text string) history.Send {
	return history.Send{
		Span: span(from, to), Project: clinic, Phone: ana, Turn: turn, Part: part, Parts: parts, Instance: "two", Text: text, Body: text,
		Effect: true,
	}
}

func turn(id int64, state string, drained, finished int, numbers []int64, messages ...history.Registered) history.Turn {
	return history.Turn{
		ID: id, Project: clinic, Phone: ana, State: state, FiredBy: "quiet", Stage: "delivery", Numbers: numbers, Messages: messages,
		DrainedAt: clock(drained), FinishedAt: clock(finished),
	}
}

func TestGoodHistoriesPass(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*history.History){
		"nothing happened":  func(h *history.History) { *h = history.History{Settled: true} },
		"usual":             func(*history.History) {},
		"ignored by reason": func(h *history.History) { ignore(h, "human") },
		"a row of another program": func(h *history.History) {
			h.Posts = h.Posts[:5]
			h.Inserts = []history.Insert{{Project: clinic, Phone: ana, ID: "d", Text: "text d"}}
		},
		"ceiling": func(h *history.History) {
			h.Turns[0].FiredBy = "ceiling"
			h.Turns[0].Messages[1].At = clock(1100)
			h.Turns[0].DrainedAt = clock(1200)
			h.Turns[0].FinishedAt = clock(2810)
		},
		"flushed early": func(h *history.History) {
			h.Turns[0].FiredBy = "flush"
			h.Turns[0].DrainedAt = clock(200)
			h.Audit = []history.Audit{{At: clock(190), Project: clinic, Phone: ana, Action: "flush"}}
		},
		"two at once have no order": func(h *history.History) {
			h.Posts[1].Invoke = 4 * ms
			h.Receipts[0].Number, h.Receipts[1].Number = 12, 11
			h.Turns[0].Messages = []history.Registered{registered("b", 0), registered("a", 120)}
			for i := range 2 {
				h.Asks[i].Messages = []history.Message{message("b"), message("a")}
			}
		},
		"others' calls may overlap": func(h *history.History) {
			for i := range h.Asks[2].Messages {
				h.Asks[2].Messages[i] = message("x")
			}
			h.Posts = append(h.Posts, history.Post{Project: clinic, Phone: bia, ID: "x", Text: "text x"})
			h.Asks[2].Span, h.Asks[2].Phone = span(2600, 2700), bia
			h.Turns[1].Phone, h.Turns[1].Messages = bia, []history.Registered{registered("x", 5000)}
			h.Turns[1].State, h.Turns[1].SupersededBy, h.Turns[2].Superseded = "discarded", 0, nil
		},
		"a part refused and sent again": func(h *history.History) {
			refused := send(1, 2, 2, 2755, 2757, "again")
			refused.Effect = false
			h.Sends = append(h.Sends, refused)
		},
		"dead when the attempts are used up": func(h *history.History) {
			h.Turns[2].State, h.Turns[2].Failures = "dead", []string{"delivery", "instance", "delivery", "delivery"}
			h.Turns[2].Parts[0].State, h.Sends = "failed", h.Sends[:2]
		},
		"a person had it meanwhile": func(h *history.History) {
			h.Audit = []history.Audit{
				{At: clock(3000), Project: clinic, Phone: ana, Action: "takeover", Until: clock(9000)},
				{At: clock(3500), Project: clinic, Phone: ana, Action: "suspend"},
				{At: clock(4000), Project: clinic, Phone: ana, Action: "resume"},
				{At: clock(4500), Project: clinic, Phone: ana, Action: "takeover", Until: clock(4600)},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			change(h)
			for _, v := range h.Check().Violations {
				t.Error(v)
			}
		})
	}
}

// ignore settles message d without an answer.
func ignore(h *history.History, reason string) {
	h.Receipts[3].Status, h.Receipts[3].Reason = "ignored", reason
	h.Turns[2].Numbers, h.Turns[2].Messages = h.Turns[2].Numbers[:1], h.Turns[2].Messages[:1]
	h.Asks[3].Messages = h.Asks[3].Messages[:1]
	h.Turns[1].SupersededBy, h.Turns[2].Superseded = 3, nil
}

// TestBadHistoriesFail breaks the good history in one place each; that and nothing else must be noticed.
func TestBadHistoriesFail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		broken []string
		change func(*history.History)
	}{
		{"acknowledged and nowhere", []string{"kept"}, func(h *history.History) { h.Posts = append(h.Posts, post("z", 20, 25, "queued")) }},
		{"duplicate of nothing", []string{"kept"}, func(h *history.History) { h.Posts = append(h.Posts, post("z", 20, 25, "duplicate")) }},
		{"inserted and nowhere", []string{"kept"}, func(h *history.History) {
			h.Inserts = append(h.Inserts, history.Insert{Project: clinic, Phone: ana, ID: "z"})
		}},
		{"ignored without a reason", []string{"kept"}, func(h *history.History) { ignore(h, "") }},
		{"left in a superseded turn", []string{"kept"}, func(h *history.History) {
			h.Turns[2].Numbers, h.Turns[2].Messages, h.Turns[2].Superseded = []int64{14}, h.Turns[2].Messages[1:], nil
			h.Turns[1].SupersededBy, h.Asks[3].Messages = 0, h.Asks[3].Messages[1:]
		}},
		{"law of conservation broken for a moment", []string{"kept"}, func(h *history.History) { h.Lost = 1 }},

		{"asked about what nobody wrote", []string{"not invented"}, func(h *history.History) { h.Posts = h.Posts[:5] }},
		{"asked with other words", []string{"not invented", "order"}, func(h *history.History) { h.Asks[0].Messages[0].Text = "other" }},
		{"written by somebody else", []string{"not invented"}, func(h *history.History) { h.Posts[5].Phone = bia }},
		{"sent what nobody answered", []string{"not invented"}, func(h *history.History) { h.Sends[2].Text = "other" }},
		{"sent before it was answered", []string{"not invented"}, func(h *history.History) { h.Sends[2].Span = span(6000, 6005) }},
		{"sent as another part", []string{"not invented"}, func(h *history.History) { h.Sends[2].Parts = 2 }},

		{"in two turns", []string{"not doubled", "order"}, func(h *history.History) {
			h.Turns[2].Messages = append([]history.Registered{registered("b", 120)}, h.Turns[2].Messages...)
		}},
		{"in a turn twice", []string{"not doubled", "order"}, func(h *history.History) {
			h.Turns[0].Messages = append(h.Turns[0].Messages, registered("b", 130))
		}},
		{"in a turn and waiting", []string{"ends", "not doubled"}, func(h *history.History) {
			h.Waiting = []history.Waiting{{Project: clinic, Phone: ana, ID: "b"}}
		}},
		{"in a lineage and beside it", []string{"not doubled"}, func(h *history.History) {
			h.Turns[1].SupersededBy = 4
		}},
		{"queued twice", []string{"not doubled"}, func(h *history.History) { h.Posts[3].Status = "queued" }},

		{"turns out of order", []string{"order"}, func(h *history.History) { h.Turns[2].Numbers = []int64{9, 14} }},
		{"messages out of order", []string{"order"}, func(h *history.History) { h.Turns[0].Numbers = []int64{12, 11} }},
		{"read otherwise than stored", []string{"order"}, func(h *history.History) { slices.Reverse(h.Asks[0].Messages) }},
		{"asked about no turn", []string{"order"}, func(h *history.History) {
			lost := ask(9, 1, "one", 9000, 9001, nil, "a")
			h.Asks = append(h.Asks, lost)
		}},

		{"acknowledged before, registered behind", []string{"real time"}, func(h *history.History) {
			h.Receipts[2].Number, h.Receipts[3].Number = 14, 13
		}},

		{"drained while another was open", []string{"one turn"}, func(h *history.History) { h.Turns[0].FinishedAt = clock(5460) }},
		{"calls of two turns at once", []string{"one turn"}, func(h *history.History) { h.Asks[2].Return = 6150 * ms }},
		{"a call and another turn's part at once", []string{"one turn"}, func(h *history.History) { h.Sends[1].Return = 5501 * ms }},
		{"a call that outlasts two of another turn", []string{"one turn"}, func(h *history.History) { h.Asks[2].Return = 6205 * ms }},
		{"called twice at once for no reason", []string{"one turn"}, func(h *history.History) {
			h.Asks[0].Return, h.Outages = 2650*ms, nil
		}},

		{"an old attempt calls", []string{"fence"}, func(h *history.History) { h.Asks[0].Attempt, h.Asks[1].Attempt = 2, 1 }},
		{"an attempt calls twice", []string{"fence"}, func(h *history.History) { h.Asks[1].Attempt = 1 }},
		{"the attempt falls", []string{"fence"}, func(h *history.History) { h.Steps[1].ToAttempt = 1 }},
		{"taken under a lease", []string{"fence"}, func(h *history.History) { h.Steps[0].Leased = true }},
		{"changed after its end", []string{"fence"}, func(h *history.History) { h.Steps[2].To = "running" }},

		{"before the window was over", []string{"window"}, func(h *history.History) { h.Turns[0].DrainedAt = clock(500) }},
		{"before the ceiling", []string{"window"}, func(h *history.History) {
			h.Turns[0].Messages[1].At, h.Turns[0].DrainedAt = clock(1100), clock(1190)
		}},
		{"before the newer text's window was over", []string{"window"}, func(h *history.History) { h.Turns[2].DrainedAt = clock(5990) }},
		{"flushed by nobody", []string{"window"}, func(h *history.History) { h.Turns[0].FiredBy = "flush" }},
		{"counted too few", []string{"window"}, func(h *history.History) { h.Turns[0].FiredBy = "count" }},

		{"one key with two bodies", []string{"one reply"}, func(h *history.History) { h.Asks[1].Body = "other" }},
		{"one part with two bodies", []string{"one reply"}, func(h *history.History) {
			again := send(1, 2, 2, 2810, 2820, "again")
			again.Effect, again.Body = false, "other"
			h.Sends = append(h.Sends, again)
		}},
		{"parts of two answers", []string{"one reply"}, func(h *history.History) {
			h.Asks[0].Replies, h.Sends[0].Text = []string{"hi", "there"}, "hi"
		}},

		{"a part twice", []string{"parts"}, func(h *history.History) { h.Sends = append(h.Sends, send(1, 2, 2, 2810, 2820, "again")) }},
		{"the second part first", []string{"parts"}, func(h *history.History) {
			h.Sends[0].Span, h.Sends[1].Span = span(2760, 2800), span(2710, 2750)
		}},
		{"a part left out", []string{"parts"}, func(h *history.History) { h.Sends = h.Sends[1:] }},
		{"done and not sent", []string{"parts"}, func(h *history.History) { h.Turns[2].Parts[0].State = "unknown" }},
		{"called sent and never got", []string{"parts"}, func(h *history.History) { h.Sends[2].Effect = false }},
		{"the second part before the first arrived", []string{"parts"}, func(h *history.History) {
			h.Sends[1].Invoke = 2745 * ms
			h.Asks[0].Replies, h.Outages = nil, append(h.Outages, history.Outage{Instance: "two", Span: span(2700, 2700)})
		}},

		{"not settled", []string{"ends"}, func(h *history.History) { h.Settled = false }},
		{"a turn left open", []string{"ends", "parts"}, func(h *history.History) {
			h.Turns[2].State, h.Turns[2].FinishedAt = "sending", time.Time{}
			h.Sends[2].Effect = false
		}},

		{"dead by the deaths of instances", []string{"budget"}, func(h *history.History) {
			h.Turns[2].State, h.Turns[2].Failures = "dead", []string{"instance", "instance", "delivery"}
		}},

		{"drained under a takeover", []string{"silence"}, func(h *history.History) {
			h.Audit = []history.Audit{{At: clock(500), Project: clinic, Phone: ana, Action: "takeover", Until: clock(700)}}
		}},
		{"sent while suspended", []string{"silence"}, func(h *history.History) {
			h.Audit = []history.Audit{
				{At: clock(6100), Project: clinic, Phone: ana, Action: "suspend"}, {At: clock(6400), Project: clinic, Phone: ana, Action: "resume"},
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := good()
			tt.change(h)
			report := h.Check()
			if got := report.Broken(); !slices.Equal(got, tt.broken) {
				t.Errorf("broken: %v, want %v", got, tt.broken)
				for _, v := range report.Violations {
					t.Log(v)
				}
			}
		})
	}
}

func TestOverlapOfOneTurnAfterAnOutageIsCounted(t *testing.T) {
	t.Parallel()
	h := good()
	h.Asks[0].Return = 2650 * ms
	report := h.Check()
	if len(report.Violations) > 0 || report.SameTurn != 1 {
		t.Errorf("violations %v, same turn %d; want none and 1", report.Violations, report.SameTurn)
	}
}
