package race_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"fila/internal/postgres"
	"fila/internal/race"
)

// life drives messages of three patients to every fate there is, and keeps beside the database what must have become of them.
type life struct {
	*scene
	random *rand.Rand
	// accepted are the ids that were acknowledged; erased those of erased conversations.
	accepted, erased map[string]bool
	// phones knows whose each id is.
	phones map[string]string
	// audit counts what people did, by action.
	audit map[string]int
	// reasons are all that a message may be ignored for.
	reasons []string
	next    int
}

// fate counts the places where each of the given messages is. There is one for each.
const fate = `
	SELECT coalesce(string_agg(id || ': ' || place, ', ') FILTER (WHERE places <> 1), '') FROM (
		SELECT known.id, string_agg(p.place, ' and ') AS place, count(p.place) AS places
		FROM unnest($1::text[]) AS known (id)
		LEFT JOIN LATERAL (
			SELECT 'waiting' AS place FROM fila_mensagens q WHERE q.id_mensagem = known.id
			UNION ALL
			SELECT 'in turn ' || t.id FROM turns t CROSS JOIN LATERAL jsonb_array_elements(t.messages) AS m
			WHERE t.state <> 'superseded' AND m ->> 'id' = known.id
			UNION ALL
			SELECT 'ignored: ' || r.reason FROM receipts r WHERE r.message_id = known.id AND r.status = 'ignored'
			UNION ALL
			SELECT 'settled' FROM receipts r WHERE r.message_id = known.id AND r.status = 'settled'
		) p ON true
		GROUP BY known.id
	) f`

// documented are the reasons of ignored messages that docs/design.md lists.
func documented(t testing.TB) (reasons []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| reason | why the message is ignored |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for i, piece := range strings.Split(names, "`") {
			if i%2 == 1 {
				reasons = append(reasons, piece)
			}
		}
	}
	return reasons
}

// unexplained are the ends without an answer that say nothing of why.
const unexplained = `
	SELECT (
		SELECT count(*) FROM turns t
		WHERE t.state IN ('superseded', 'discarded', 'dead') AND coalesce(t.reason, '') = ''
			OR t.state = 'superseded' AND t.superseded_by IS NULL
			AND NOT EXISTS (SELECT FROM conversations c WHERE c.project = t.project AND c.phone = t.phone AND t.id = ANY (c.superseded_turns))
			AND NOT EXISTS (SELECT FROM receipts r WHERE r.id = ANY (t.message_ids) AND r.status = 'ignored')
			AND NOT EXISTS (SELECT FROM turns n WHERE t.id = ANY (n.superseded_turns))
			OR t.state = 'superseded' AND t.reason NOT IN ('newer messages', 'interrupted by newer messages')
			OR t.state = 'discarded' AND t.reason NOT IN ('human', 'discarded at resume', 'no use')
	) + (SELECT count(*) FROM receipts r WHERE r.status = 'ignored' AND (r.reason = ANY ($1)) IS NOT TRUE)`

// check notes every message without exactly one fate, and every suppression without a reason.
func (l *life) check(step string) {
	l.Helper()
	if lost := l.count(`SELECT count(*) FROM fila_lost`); lost > 0 {
		l.violated("after %s: %d in fila_lost", step, lost)
	}
	var wrong string
	if err := l.pool.QueryRow(l.Context(), fate, slices.Sorted(maps.Keys(l.accepted))).Scan(&wrong); err != nil {
		l.Fatal(err)
	}
	if wrong != "" {
		l.violated("after %s: %s", step, wrong)
	}
	if n := l.count(unexplained, l.reasons); n > 0 {
		l.violated("after %s: %d suppressions without a reason", step, n)
	}
	for action, want := range l.audit {
		if got := l.count(`SELECT count(*) FROM audit WHERE action = $1 AND actor = 'ana'`, action); got != want {
			l.violated("after %s: %d audit rows of %s, want %d", step, got, action, want)
		}
	}
	left := `SELECT (SELECT count(*) FROM receipts WHERE message_id = ANY ($1)) + (SELECT count(*) FROM fila_mensagens WHERE id_mensagem = ANY ($1))
		+ (SELECT count(*) FROM turns t CROSS JOIN LATERAL jsonb_array_elements(t.messages) AS m WHERE m ->> 'id' = ANY ($1))`
	if n := l.count(left, slices.Sorted(maps.Keys(l.erased))); n > 0 {
		l.violated("after %s: %d rows of erased messages", step, n)
	}
}

// refusals are the SQLSTATEs with which a step that does not fit may end: our own, and those of somebody in the way.
var refusals = []string{"FI404", "FI409", "FI422", "55P03", "40001"}

// ask runs a statement that may be refused. It answers nil where that was, or where the statement has nothing to say.
func (l *life) ask(sql string, args ...any) (said *string) {
	l.Helper()
	err := l.pool.QueryRow(l.Context(), sql, args...).Scan(&said)
	if err != nil && !slices.Contains(refusals, postgres.Code(err)) {
		l.Fatalf("%s: %v", sql, err)
	}
	return said
}

// by is ask for an action of a person: it counts the audit row that it must have left.
func (l *life) by(action, sql string, args ...any) {
	l.Helper()
	if said := l.ask(sql, args...); said != nil && *said != "nothing waits" {
		l.audit[action]++
	}
}

func (l *life) accept(id, phone string, ignored any) {
	l.Helper()
	said := l.ask(`SELECT statuses[1] FROM fila_push(ARRAY['clinic'], ARRAY[$1], ARRAY[$2], ARRAY[$2], ARRAY['oi'], ARRAY['text'],
		ARRAY[NULL], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY[$3::text])`, id, phone, ignored)
	status := "refused"
	if said != nil {
		status = *said
	}
	known := l.accepted[id] || l.erased[id]
	switch {
	case status == "duplicate" && known:
	case (status == "queued" || status == "ignored") && !known:
		l.accepted[id], l.phones[id] = true, phone
	default:
		l.violated("a message that was here before (%v) is answered %q", known, status)
	}
}

func (l *life) fresh() string {
	l.next++
	return fmt.Sprint("m", l.next)
}

// used is an id that was there before, of whichever patient.
func (l *life) used() string {
	if l.next == 0 {
		return l.fresh()
	}
	return fmt.Sprint("m", 1+l.random.IntN(l.next))
}

// erase forgets a patient, in the model too.
func (l *life) erase(phone string) {
	l.by("erase", `SELECT fila_erase('clinic', $1, 'ana')::text`, phone)
	for id := range l.accepted {
		if l.phones[id] == phone {
			delete(l.accepted, id)
			l.erased[id] = true
		}
	}
}

// some is a turn of a patient in a state, or 0.
func (l *life) some(phone, states string) int64 {
	return int64(l.count(`SELECT coalesce(max(id), 0) FROM turns WHERE phone = $1 AND state = ANY (string_to_array($2, ' '))`, phone, states))
}

func (l *life) drain(phone string) {
	l.ask(`SELECT verdict FROM fila_drain('clinic', ARRAY[$1], 'one', 100)`, phone)
}

// steps are what may happen to a conversation. Whatever does not fit its state is refused or does nothing.
func (l *life) steps(phone string) map[string]func() {
	attempt := func(turn int64) int {
		return l.count(`SELECT coalesce(max(attempt), 0) FROM turns WHERE id = $1`, turn)
	}
	fails := func(states, stage, fate string) func() {
		return func() {
			turn := l.some(phone, states)
			l.ask(`SELECT fila_fail($1, $2, $3, CASE $3 WHEN 'delivery' THEN 1 END, $4, 'status 500', true, 0)`, turn, attempt(turn), stage, fate)
		}
	}
	replies := func(parts string, handoff bool) func() {
		return func() {
			turn := l.some(phone, "running")
			l.ask(`SELECT verdict FROM fila_reply('clinic', $1, $2, 'a', $3::text[], $4, true, 'one', 100)`, turn, attempt(turn), parts, handoff)
		}
	}
	rule := func(during, takeover, dead string) func() {
		return func() {
			l.exec(`UPDATE projects SET during_turn = $1, takeover_messages = $2, on_dead = $3`, during, takeover, dead)
		}
	}
	message := func() { l.accept(l.fresh(), phone, nil) }
	takeover := func() { l.by("takeover", `SELECT fila_takeover('clinic', $1, 60, 'ana', 'asked')`, phone) }
	return map[string]func(){
		"an overtaken turn":    func() { message(); l.drain(phone); message(); replies("{a}", false)() },
		"a takeover meanwhile": func() { message(); takeover() },
		"a message":            message,
		"another message":      message,
		"one that is filtered": func() { l.accept(l.fresh(), phone, filtered[l.random.IntN(len(filtered))]) },
		"the clinic writes":    func() { l.accept(l.fresh(), phone, "from_me") },
		"a repetition":         func() { l.accept(l.used(), phone, nil) },
		"a foreign row":        func() { l.foreign(l.fresh(), phone, "oi") },
		"an empty foreign row": func() { l.foreign(l.fresh(), phone, "") },
		"a foreign repetition": func() { l.foreign(l.used(), phone, "oi") },
		"a drain":              func() { l.drain(phone) },
		"another drain":        func() { l.drain(phone) },
		"a claim":              func() { l.exec(`SELECT fila_claim(ARRAY['clinic'], ARRAY[10], 'two', 100)`) },
		"time passes":          func() { l.pass(200) },
		"a reply":              replies("{a}", false),
		"nothing to say":       replies("{}", false),
		"a handoff":            replies("{}", true),
		"the agent says 202":   func() { t := l.some(phone, "running"); l.ask(`SELECT fila_await_reply($1, $2, 100)`, t, attempt(t)) },
		"the agent fails":      fails("running", "agent", "retry"),
		"the agent refuses":    fails("running", "agent", "dead"),
		"the agent is silent":  fails("running", "agent", "unknown"),
		"a part fails":         fails("sending", "delivery", "retry"),
		"a part is refused":    fails("sending", "delivery", "dead"),
		"a part is in doubt":   fails("sending", "delivery", "unknown"),
		"a part is sent":       func() { t := l.some(phone, "sending"); l.ask(`SELECT fila_sent($1, $2, 1, 'p', true)`, t, attempt(t)) },
		"an interrupt":         func() { t := l.some(phone, "running retrying"); l.ask(`SELECT fila_interrupt($1, $2)`, t, attempt(t)) },
		"a confirm":            func() { t := l.some(phone, "running"); l.ask(`SELECT fila_confirm('clinic', $1, $2)`, t, attempt(t)) },
		"a takeover":           takeover,
		"a release":            func() { l.by("release", `SELECT fila_release('clinic', $1, 'ana')`, phone) },
		"a suspension":         func() { l.by("suspend", `SELECT fila_suspend('clinic', $1, 'ana', 'asked')`, phone) },
		"resume and answer":    func() { l.by("resume", `SELECT fila_resume('clinic', $1, 'answer', 'ana')`, phone) },
		"resume and discard":   func() { l.by("resume", `SELECT fila_resume('clinic', $1, 'discard', 'ana')`, phone) },
		"a flush":              func() { l.by("flush", `SELECT fila_flush('clinic', $1, 'ana')`, phone) },
		"a redrive":            func() { l.by("redrive", `SELECT fila_redrive($1, 'ana', 'mended', NULL, true)`, l.some(phone, "dead")) },
		"a discard": func() {
			l.by("discard", `SELECT fila_discard($1, 'ana', 'no use')`, l.some(phone, "dead retrying unknown replied running"))
		},
		"it was done": func() { l.by("resolve", `SELECT fila_resolve($1, 'done', 'ana', 'looked')`, l.some(phone, "unknown")) },
		"it was not done": func() {
			l.by("resolve", `SELECT fila_resolve($1, 'not_done', 'ana', 'looked')`, l.some(phone, "unknown"))
		},
		"an erasure":          func() { l.erase(phone) },
		"old turns go":        func() { l.ask(`SELECT fila_forget_turns('clinic', false, 0, 10)::text`) },
		"old dead turns go":   func() { l.ask(`SELECT fila_forget_turns('clinic', true, 0, 10)::text`) },
		"idle ones go":        func() { l.ask(`SELECT fila_forget_conversations('', '', 10)::text`) },
		"the rule: queue":     rule("queue", "ignore", "advance"),
		"the rule: supersede": rule("supersede", "hold", "suspend"),
		"the rule: interrupt": rule("interrupt", "hold", "advance"),
	}
}

// filtered are the reasons with which the entrance hands messages over.
var filtered = []string{"group", "broadcast", "newsletter", "too_old", "team", "status"}

// foreign is a row of another program, which is accepted once it is adopted, unless its id was here before.
func (l *life) foreign(id, phone, text string) {
	l.exec(`INSERT INTO fila_mensagens_clinic (id_mensagem, telefone, mensagem) VALUES ($1, $2, $3)`, id, phone, text)
	l.exec(`SELECT count(*) FROM fila_adopt('clinic')`)
	if !l.accepted[id] && !l.erased[id] {
		l.accepted[id], l.phones[id] = true, phone
	}
}

// live is one life of so many steps.
func (l *life) live(steps int) {
	l.exec(`TRUNCATE fila_mensagens, receipts, erased_receipts, hanging_calls, conversations, turns, deliveries, audit, wakeups`)
	phones := []string{ana, bia, cleo}
	names := slices.Sorted(maps.Keys(l.steps(ana)))
	for range steps {
		name := names[l.random.IntN(len(names))]
		l.steps(phones[l.random.IntN(len(phones))])[name]()
		if l.check(name); len(l.violations) > 0 {
			return
		}
	}
}

// bounded is how many lives are lived: until a fault is found, which most lives do.
func bounded(fault string, lives int) int {
	if fault != "" {
		return 100
	}
	return lives
}

// TestEveryMessageHasOneFate is the conservation law in its strict form: after each of many random steps every acknowledged message is
// in exactly one place, and whatever was not answered says why.
func TestEveryMessageHasOneFate(t *testing.T) {
	t.Parallel()
	lives := 12
	if testing.Short() {
		lives = 4
	}
	seed := rand.Uint64()
	for _, fault := range []string{"", "supersede_loses_messages", "ignored_without_a_trace"} {
		t.Run("fault "+fault, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			if fault != "" {
				if err := race.Fault(t.Context(), s.pool, fault); err != nil {
					t.Fatal(err)
				}
			}
			s.exec(`UPDATE projects SET debounce = '0', keep_turns = '0', keep_dead = '0'`)
			t.Logf("seed %d", seed)
			for n := range bounded(fault, lives) {
				l := &life{
					scene: s, random: rand.New(rand.NewPCG(seed, uint64(n))),
					accepted: map[string]bool{}, erased: map[string]bool{}, phones: map[string]string{}, audit: map[string]int{},
					reasons: documented(t),
				}
				if l.live(120); len(s.violations) > 0 {
					break
				}
			}
			if fault != "" && len(s.violations) == 0 {
				t.Error("no life was touched by the fault")
			}
			if fault == "" {
				for _, v := range s.violations {
					t.Error(v)
				}
			}
		})
	}
}
