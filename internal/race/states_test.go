package race_test

import (
	"os"
	"strings"
	"testing"
)

// table is a Markdown table: the cells of each row by column, and the names of rows and columns in their order.
type table struct {
	columns, rows []string
	cells         map[string]map[string]string
}

// stateTables are the tables of docs/states.md: of a turn, and of a conversation.
func stateTables(t *testing.T) (turns, conversations table) {
	t.Helper()
	page, err := os.ReadFile("../../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []table
	inside := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		fields := strings.Split(strings.Trim(line, "|"), "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		switch {
		case !inside:
			found = append(found, table{columns: fields[1:], cells: map[string]map[string]string{}})
			inside = true
		case fields[0] != "---":
			found[len(found)-1].add(t, fields)
		}
	}
	if len(found) != 2 {
		t.Fatalf("%d tables, want 2", len(found))
	}
	return found[0], found[1]
}

func (it *table) add(t *testing.T, fields []string) {
	t.Helper()
	if len(fields) != len(it.columns)+1 || it.cells[fields[0]] != nil {
		t.Fatalf("row %q has %d cells, want %d, once", fields[0], len(fields)-1, len(it.columns))
	}
	row := map[string]string{}
	for i, column := range it.columns {
		if fields[i+1] == "" {
			t.Errorf("%s, %s: the cell is empty", fields[0], column)
		}
		row[column] = fields[i+1]
	}
	it.rows = append(it.rows, fields[0])
	it.cells[fields[0]] = row
}

// covers fails where the page and the test do not name the same.
func covers[F any](t *testing.T, what string, named []string, known map[string]F) {
	t.Helper()
	for _, name := range named {
		if _, ok := known[name]; !ok {
			t.Errorf("%s %q is in the page only", what, name)
		}
	}
	if len(named) != len(known) {
		t.Errorf("the page has %d %ss, the test %d", len(named), what, len(known))
	}
}

const (
	modeOf = `SELECT coalesce((SELECT fila_mode(mode, until) FROM conversations WHERE phone = $1), 'absent')`
	keep   = `SELECT verdict FROM fila_reply('clinic', $1, $2, 'a b', ARRAY['a', 'b'], false, false, NULL, 100)`
)

func (s *scene) during(rule string) {
	s.Helper()
	s.exec(`UPDATE projects SET during_turn = $1`, rule)
}

// states bring a new turn of ana into a state.
var states = map[string]func(*scene) int64{
	"running": func(s *scene) int64 { return s.begin(ana, "m1") },
	"awaited": func(s *scene) int64 {
		turn := s.begin(ana, "m1")
		s.exec(await, turn, 1)
		return turn
	},
	"retrying": func(s *scene) int64 { return s.failed("agent", nil, "retry") },
	"replied": func(s *scene) int64 {
		turn := s.begin(ana, "m1")
		s.exec(`SELECT fila_reply('clinic', $1, 1, 'a b', ARRAY['a', 'b'], false, false, 'one', 100)`, turn)
		return turn
	},
	"sending":            func(s *scene) int64 { return s.replied(ana, "m1") },
	"unknown (agent)":    func(s *scene) int64 { return s.failed("agent", nil, "unknown") },
	"unknown (delivery)": func(s *scene) int64 { return s.failed("delivery", 1, "unknown") },
	"done": func(s *scene) int64 {
		turn := s.begin(ana, "m1")
		s.exec(`SELECT fila_reply('clinic', $1, 1, NULL, '{}', false, true, 'one', 100)`, turn)
		return turn
	},
	"superseded": func(s *scene) int64 {
		s.during("supersede")
		turn := s.begin(ana, "m1")
		s.push("m2", ana)
		s.exec(reply, turn, 1)
		s.during("queue")
		return turn
	},
	"discarded": func(s *scene) int64 {
		turn := s.begin(ana, "m1")
		s.exec(`SELECT fila_discard($1, 'rita', 'a test')`, turn)
		return turn
	},
	"dead": func(s *scene) int64 { return s.buried(ana, "m1") },
}

func (s *scene) failed(stage string, part any, fate string) (turn int64) {
	s.Helper()
	turn = s.begin(ana, "m1")
	if stage == "delivery" {
		s.exec(reply, turn, 1)
	}
	s.exec(fail, turn, 1, stage, part, fate)
	return turn
}

// newer has a newer message fall due, and asks the drain.
func newer(rule string) func(*scene, *session, int64, int) answer {
	return func(s *scene, one *session, _ int64, _ int) answer {
		s.during(rule)
		s.push("m9", ana)
		s.exec(`SELECT fila_flush('clinic', $1, 'nobody')`, ana)
		return one.ask(drainOne, ana)
	}
}

func ofTurn(sql string) func(*scene, *session, int64, int) answer {
	return func(_ *scene, one *session, turn int64, _ int) answer { return one.ask(sql, turn) }
}

func ofAttempt(sql string, args ...any) func(*scene, *session, int64, int) answer {
	return func(_ *scene, one *session, turn int64, attempt int) answer {
		return one.ask(sql, append([]any{turn, attempt}, args...)...)
	}
}

func ofPhone(sql string, before ...string) func(*scene, *session, int64, int) answer {
	return func(s *scene, one *session, _ int64, _ int) answer {
		for _, earlier := range before {
			s.exec(earlier, ana)
		}
		return one.ask(sql, ana)
	}
}

// personHad has a person take the conversation and give it back, and then acts.
func personHad(action func(*scene, *session, int64, int) answer) func(*scene, *session, int64, int) answer {
	return func(s *scene, one *session, turn int64, attempt int) answer {
		s.exec(`SELECT fila_takeover('clinic', $1, 30, 'nobody', NULL)`, ana)
		s.exec(`SELECT fila_release('clinic', $1, 'nobody')`, ana)
		return action(s, one, turn, attempt)
	}
}

// hungUp gives the turn back, after what happened meanwhile.
func hungUp(meanwhile func(*scene)) func(*scene, *session, int64, int) answer {
	return func(s *scene, one *session, turn int64, attempt int) answer {
		s.during("interrupt")
		meanwhile(s)
		return one.ask(interrupt, turn, attempt)
	}
}

func newest(s *scene) { s.push("m9", ana) }

// What only prepares an action is done by nobody, so that its audit row is told from that of the action.
const (
	suspendBefore  = `SELECT fila_suspend('clinic', $1, 'nobody', 'a test')`
	audited        = `SELECT coalesce(string_agg(action, ', ' ORDER BY id), '-') FROM audit WHERE id > $1 AND actor <> 'nobody'`
	release        = `SELECT fila_release('clinic', $1, 'rita')`
	resumeAnswer   = `SELECT fila_resume('clinic', $1, 'answer', 'rita')`
	resumeDiscard  = `SELECT fila_resume('clinic', $1, 'discard', 'rita')`
	resolveNotDone = `SELECT fila_resolve($1, 'not_done', 'rita', 'not seen')`
	flush          = `SELECT fila_flush('clinic', $1, 'rita')`
	typing         = `SELECT fila_typing('clinic', $1)::text`
)

var actions = map[string]func(s *scene, one *session, turn int64, attempt int) answer{
	"confirm":                ofAttempt(confirm),
	"reply, current attempt": ofAttempt(keep),
	"reply, stale attempt": func(_ *scene, one *session, turn int64, attempt int) answer {
		return one.ask(keep, turn, attempt-1)
	},
	"reply, no attempt": func(_ *scene, one *session, turn int64, _ int) answer { return one.ask(keep, turn, nil) },
	"takeover":          ofPhone(takeover),
	"release":           ofPhone(release),
	"suspend":           ofPhone(suspend),
	"resume answer":     ofPhone(resumeAnswer, suspendBefore),
	"resume discard":    ofPhone(resumeDiscard, suspendBefore),
	"flush":             ofPhone(flush),
	"typing":            ofPhone(typing),
	"redrive":           ofTurn(redrive),
	"redrive --force":   ofTurn(`SELECT fila_redrive($1, 'rita', 'agent is back', NULL, true)`),
	"discard":           ofTurn(`SELECT fila_discard($1, 'rita', 'not needed')`),
	"resolve done":      ofTurn(`SELECT fila_resolve($1, 'done', 'rita', 'seen')`),
	"resolve not_done":  ofTurn(resolveNotDone),
	"erase":             ofPhone(`SELECT 'erased' FROM fila_erase('clinic', $1, 'rita')`),

	"newer burst is due, queue":     newer("queue"),
	"newer burst is due, supersede": newer("supersede"),
	"newer burst is due, interrupt": newer("interrupt"),
	"interrupt": func(s *scene, one *session, turn int64, attempt int) answer {
		newer("interrupt")(s, one, turn, attempt)
		return one.ask(interrupt, turn, nil)
	},
	"hung up, newer message": hungUp(newest),
	"hung up, nothing newer": hungUp(func(*scene) {}),
	"hung up, suspended meanwhile": hungUp(func(s *scene) {
		newest(s)
		s.exec(suspendBefore, ana)
	}),
	"hung up, a person had it":          personHad(hungUp(newest)),
	"confirm, a person had it":          personHad(ofAttempt(confirm)),
	"resolve not_done, a person had it": personHad(ofTurn(resolveNotDone)),
	"gate: reply, a person had it":      personHad(ofAttempt(reply)),
	"gate: part 1, a person had it":     personHad(ofAttempt(send, 1)),
	"part 1 sent, a person had it":      personHad(ofAttempt(sent, 1)),
	"gate: reply":                       ofAttempt(reply),
	"gate: reply, newer message, supersede": func(s *scene, one *session, turn int64, attempt int) answer {
		s.during("supersede")
		s.push("m9", ana)
		return one.ask(reply, turn, attempt)
	},
	"in company: reply": ofAttempt(advance),
	"in company: reply, newer message, supersede": func(s *scene, one *session, turn int64, attempt int) answer {
		s.during("supersede")
		s.push("m9", ana)
		return one.ask(advance, turn, attempt)
	},
	"in company: reply, a person had it": personHad(ofAttempt(advance)),
	"in company: reply, suspended": func(s *scene, one *session, turn int64, attempt int) answer {
		s.exec(suspendBefore, ana)
		return one.ask(advance, turn, attempt)
	},
	"in company: part 1 sent":    ofAttempt(advanceSent, 1),
	"in company: last part sent": ofAttempt(advanceSent, 2),
	"gate: part 1":               ofAttempt(send, 1),
	"part 1 sent":                ofAttempt(sent, 1),
	"part 1 failed, retry":       ofAttempt(fail, "delivery", 1, "retry"),
	"part 1 failed, unknown":     ofAttempt(fail, "delivery", 1, "unknown"),
	"part 1 failed, dead":        ofAttempt(fail, "delivery", 1, "dead"),
	"agent failed, retry":        ofAttempt(fail, "agent", nil, "retry"),
	"agent failed, unknown":      ofAttempt(fail, "agent", nil, "unknown"),
	"agent failed, dead":         ofAttempt(fail, "agent", nil, "dead"),
	"lease over, claim": func(s *scene, one *session, _ int64, _ int) answer {
		s.pass(200)
		return one.ask(claim)
	},
	"clinic writes": ofPhone(`SELECT reasons[1] FROM fila_push(ARRAY['clinic'], ARRAY['x9'], ARRAY[$1], ARRAY[$1], ARRAY['hello'], ARRAY['text'],
		ARRAY[NULL], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY['from_me'])`),
}

// outcome is a cell's answer and what is behind its arrow, or the state that stays.
func outcome(cell, stays string) (answer, string) {
	said, after, moved := strings.Cut(cell, " → ")
	if said == "409" {
		said = "FI409"
	}
	if !moved {
		after = stays
	}
	return answer(said), after
}

// Every action in every state of a turn does what docs/states.md says.
func TestTurnStates(t *testing.T) {
	t.Parallel()
	page, _ := stateTables(t)
	covers(t, "action", page.rows, actions)
	covers(t, "state", page.columns[:len(page.columns)-2], states)
	for _, state := range page.columns[:len(page.columns)-2] {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			one := s.session()
			for _, action := range page.rows {
				if page.cells[action][state] != "n/a" && states[state] != nil && actions[action] != nil {
					s.clear()
					s.tryTurn(t, one, action, state, page.cells[action])
				}
			}
		})
	}
}

// clear forgets everything that earlier cells left.
func (s *scene) clear() {
	s.Helper()
	s.exec(`TRUNCATE fila_mensagens, receipts, erased_receipts, hanging_calls, conversations, turns, deliveries, audit, wakeups`)
	s.exec(`UPDATE projects SET during_turn = 'queue', takeover_messages = 'ignore'`)
}

func (s *scene) tryTurn(t *testing.T, one *session, action, state string, cells map[string]string) {
	t.Helper()
	turn := states[state](s)
	before, _, _ := strings.Cut(state, " ")
	if before == "awaited" {
		before = "running"
	}
	const stateOf = `SELECT coalesce((SELECT state FROM turns WHERE id = $1), 'gone')`
	if got := s.text(stateOf, turn); got != before {
		t.Fatalf("the turn that should be %s is %s", state, got)
	}
	last := s.count(`SELECT coalesce(max(id), 0) FROM audit`)
	said, after := outcome(cells[state], before)
	got := actions[action](s, one, turn, s.count(`SELECT attempt FROM turns WHERE id = $1`, turn))
	if now := s.text(stateOf, turn); got != said || now != after {
		t.Errorf("%s, %s: answered %q and is %s, want %q and %s", action, state, got, now, said, after)
	}
	if mode := s.text(modeOf, ana); mode != cells["mode"] {
		t.Errorf("%s, %s: the conversation is %s, want %s", action, state, mode, cells["mode"])
	}
	if lost := s.count(`SELECT count(*) FROM fila_lost`); lost != 0 {
		t.Errorf("%s, %s: %d messages are lost", action, state, lost)
	}
	if rows, want := s.text(audited, last), auditOf(said, before, after, cells["audit"]); rows != want {
		t.Errorf("%s, %s: audit has %s, want %s", action, state, rows, want)
	}
}

// auditOf is what an answer leaves in audit: a refusal leaves nothing, and only what was unknown can become known.
func auditOf(said answer, before, after, accepted string) string {
	if said == "FI409" || said == "nothing waits" || (accepted == "reconcile" && (before != "unknown" || after == "unknown")) {
		return "-"
	}
	return accepted
}

var modes = map[string]func(*scene){
	"agent": func(*scene) {},
	"human": func(s *scene) { s.exec(takeover, ana) },
	"human, expired": func(s *scene) {
		s.exec(takeover, ana)
		s.exec(`UPDATE conversations SET until = clock_timestamp() - interval '1 second'`)
	},
	"suspended": func(s *scene) { s.exec(suspend, ana) },
}

func arrives(rule string) func(*scene, *session) answer {
	return func(s *scene, one *session) answer {
		s.exec(`UPDATE projects SET takeover_messages = $1`, rule)
		return one.ask(pushOne, "m9", ana)
	}
}

func asks(sql string) func(*scene, *session) answer {
	return func(_ *scene, one *session) answer { return one.ask(sql, ana) }
}

var floorActions = map[string]func(*scene, *session) answer{
	"message arrives, ignore": arrives("ignore"),
	"message arrives, hold":   arrives("hold"),
	"takeover":                asks(takeover),
	"release":                 asks(release),
	"suspend":                 asks(suspend),
	"resume answer":           asks(resumeAnswer),
	"resume discard":          asks(resumeDiscard),
	"flush":                   asks(flush),
	"typing":                  asks(typing),
	"due": func(s *scene, one *session) answer {
		s.pass(window + 1)
		return one.ask(drainOne, ana)
	},
}

// Every action in every mode of a conversation does what docs/states.md says.
func TestConversationModes(t *testing.T) {
	t.Parallel()
	_, page := stateTables(t)
	covers(t, "action", page.rows, floorActions)
	held := page.columns[:len(page.columns)-1]
	covers(t, "mode", held, modes)
	s := setup(t)
	one := s.session()
	for _, action := range page.rows {
		for _, mode := range held {
			s.clear()
			s.exec(`UPDATE projects SET takeover_messages = 'hold'`)
			if !strings.HasPrefix(action, "message arrives") {
				s.push("m1", ana)
			} else {
				s.exec(`SELECT fila_lock('clinic', $1)`, ana)
			}
			modes[mode](s)
			last := s.count(`SELECT coalesce(max(id), 0) FROM audit`)
			said, after := outcome(page.cells[action][mode], "")
			got := floorActions[action](s, one)
			if now := s.text(modeOf, ana); got != said || now != after {
				t.Errorf("%s, %s: answered %q and is %s, want %q and %s", action, mode, got, now, said, after)
			}
			if rows, want := s.text(audited, last), auditOf(said, "", "", page.cells[action]["audit"]); rows != want {
				t.Errorf("%s, %s: audit has %s, want %s", action, mode, rows, want)
			}
			if lost := s.count(`SELECT count(*) FROM fila_lost`); lost != 0 {
				t.Errorf("%s, %s: %d messages are lost", action, mode, lost)
			}
		}
	}
}
