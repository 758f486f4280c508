package retention_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/retention"
)

func TestMain(m *testing.M) {
	// The test server of a lone test program is supervised until that ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("fila/internal/postgres/cluster.(*Cluster).supervise"))
}

const ana = "5531999990001"

// clinic keeps receipts for 8 days, turns for 30 and the dead for 14.
type clinic struct {
	testing.TB
	pool *postgres.Pool
	gone map[string]int64
}

func setup(t testing.TB) *clinic {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := &clinic{TB: t, pool: pool, gone: map[string]int64{}}
	c.exec(`SELECT fila_open_project('clinic', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`)
	return c
}

func (c *clinic) exec(sql string, args ...any) {
	c.Helper()
	if _, err := c.pool.Exec(c.Context(), sql, args...); err != nil {
		c.Fatal(err)
	}
}

func (c *clinic) text(sql string, args ...any) (answer string) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), sql, args...).Scan(&answer); err != nil {
		c.Fatal(err)
	}
	return answer
}

// forget makes one round, with pages of two rows.
func (c *clinic) forget() {
	c.Helper()
	retention.New(retention.Options{
		Pool: c.pool, Page: 2, Forgot: func(class string, rows int64) { c.gone[class] += rows }, Log: zerolog.New(zerolog.NewTestWriter(c)),
	}).Round(c.Context())
	c.want("lost", 0, `SELECT count(*) FROM fila_lost`)
}

func (c *clinic) want(what string, want int, sql string, args ...any) {
	c.Helper()
	var got int
	if err := c.pool.QueryRow(c.Context(), sql, args...).Scan(&got); err != nil {
		c.Fatal(err)
	}
	if got != want {
		c.Errorf("%s: %d, want %d", what, got, want)
	}
}

func (c *clinic) count(table string, want int) {
	c.Helper()
	c.want(table, want, `SELECT count(*) FROM `+table)
}

const push = `SELECT statuses[1] FROM fila_push(ARRAY['clinic'], ARRAY[$1::text], ARRAY[$2::text], ARRAY[$2::text], ARRAY['oi'], ARRAY['text'],
	ARRAY[NULL], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY[NULL])`

// push accepts one message, and says queued, duplicate or ignored.
func (c *clinic) push(id, phone string) string {
	c.Helper()
	return c.text(push, id, phone)
}

// drain makes a turn of what waits.
func (c *clinic) drain(phone string) (turn int64) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), `SELECT turn_id FROM fila_drain('clinic', ARRAY[$1], 'here', 30)`, phone).Scan(&turn); err != nil {
		c.Fatal(err)
	}
	return turn
}

// answered makes a turn that was answered with one part.
func (c *clinic) answered(id, phone string) int64 {
	c.Helper()
	c.push(id, phone)
	turn := c.drain(phone)
	c.exec(`SELECT fila_reply('clinic', $1, 1, 'ola', ARRAY['ola'], false, true, 'here', 30)`, turn)
	c.exec(`SELECT fila_sent($1, 1, 1, 'sent', true)`, turn)
	return turn
}

// died makes a dead turn.
func (c *clinic) died(id, phone string) int64 {
	c.Helper()
	c.push(id, phone)
	turn := c.drain(phone)
	c.exec(`SELECT fila_fail($1, 1, 'agent', NULL, 'dead', 'refused with 400', true, 0)`, turn)
	return turn
}

// pass lets days go by: everything that lies in the database gets older.
func (c *clinic) pass(days float64) {
	c.Helper()
	c.exec(`UPDATE turns SET first_at = first_at - make_interval(secs => 86400 * $1::double precision), drained_at = drained_at - make_interval(secs => 86400 * $1::double precision), finished_at = finished_at - make_interval(secs => 86400 * $1::double precision)`, days)
	c.exec(`UPDATE receipts SET received_at = received_at - make_interval(secs => 86400 * $1::double precision)`, days)
	c.exec(`UPDATE erased_receipts SET erased_at = erased_at - make_interval(secs => 86400 * $1::double precision)`, days)
}

// A dead letter that is kept for longer than what was answered after it still knows of that.
func TestRedriveRemembersWhatIsForgotten(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`UPDATE projects SET keep_turns = interval '1 day'`)
	dead := c.died("dead", ana)
	c.answered("later", ana)
	last := c.died("last", ana)
	c.pass(2)
	c.forget()
	c.count("turns", 2)
	for turn, want := range map[int64]string{dead: "FI409", last: ""} {
		_, err := c.pool.Exec(t.Context(), `SELECT fila_redrive($1, 'ana', 'again')`, turn)
		if got := postgres.Code(err); got != want {
			t.Errorf("redriving turn %d: %q, want %q", turn, got, want)
		}
		c.exec(`UPDATE turns SET state = 'dead', reason = 'test', finished_at = clock_timestamp() WHERE open`)
	}
}

func TestEveryClassHasItsTime(t *testing.T) {
	t.Parallel()
	c := setup(t)
	for n := range 5 {
		c.answered(fmt.Sprint("m", n), fmt.Sprint(ana, n))
	}
	c.died("dead", ana)

	c.pass(7.9)
	c.forget()
	c.count("receipts", 6)
	if got := c.push("m1", ana); got != "duplicate" {
		t.Errorf("a repetition after 7.9 days is %s", got)
	}

	c.pass(0.2)
	c.forget()
	c.count("receipts", 0)
	c.count("turns", 6)
	c.count("conversations", 6)

	c.pass(5.8)
	c.forget()
	c.count("turns WHERE dead", 1)
	c.pass(0.2)
	c.forget()
	c.count("turns WHERE dead", 0)
	c.count("turns", 5)

	c.pass(15.8)
	c.forget()
	c.count("turns", 5)
	c.pass(0.2)
	c.forget()
	for _, table := range []string{"turns", "deliveries", "receipts", "conversations"} {
		c.count(table, 0)
	}
	want := map[string]int64{"receipts": 6, "dead": 1, "turns": 5, "conversations": 6}
	if fmt.Sprint(c.gone) != fmt.Sprint(want) {
		t.Errorf("forgotten: %v, want %v", c.gone, want)
	}
}

func TestATurnMayGoBeforeItsReceipts(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`UPDATE projects SET keep_turns = interval '1 day', during_turn = 'supersede'`)
	c.push("first", ana)
	overtaken := c.drain(ana)
	c.push("second", ana)
	c.exec(`SELECT fila_reply('clinic', $1, 1, 'ola', ARRAY['ola'], false, true, 'here', 30)`, overtaken)
	c.want("superseded", 1, `SELECT count(*) FROM turns WHERE state = 'superseded'`)

	c.pass(1.1)
	c.forget()
	c.count("turns", 0)
	c.count("receipts WHERE status = 'queued'", 2)
	c.want("waiting", 2, `SELECT count(*) FROM fila_mensagens`)

	turn := c.drain(ana)
	c.exec(`SELECT fila_reply('clinic', $1, 1, 'ola', '{}', false, true, 'here', 30)`, turn)
	c.pass(1.1)
	c.forget()
	c.count("turns", 0)
	c.count("receipts WHERE status = 'settled'", 2)
	if got := c.push("second", ana); got != "duplicate" {
		t.Errorf("the repetition is %s", got)
	}
	c.pass(8)
	c.forget()
	c.count("receipts", 0)
}

func TestWhatIsNotSettledStays(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.push("waits", ana)
	c.push("runs", ana+"1")
	running := c.drain(ana + "1")
	c.push("gone", ana+"2")
	c.exec(`DELETE FROM fila_mensagens WHERE id_mensagem = 'gone'`)
	c.exec(`SELECT fila_suspend('clinic', $1, 'ana', 'asked for it')`, ana+"3")
	c.pass(1000)
	retention.New(retention.Options{Pool: c.pool, Forgot: func(string, int64) {}}).Round(t.Context())
	c.count("receipts", 3)
	c.want("evidence of the lost one", 1, `SELECT count(*) FROM fila_lost WHERE message_id = 'gone'`)
	c.want("running", 1, `SELECT count(*) FROM turns WHERE id = $1`, running)
	c.count("conversations", 4)
}

func TestDigestsOfTheErasedGo(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`UPDATE projects SET keep_receipts = interval '1 day'`)
	for n := range 5 {
		c.push(fmt.Sprint("m", n), ana)
	}
	c.exec(`SELECT fila_erase('clinic', $1, 'ana')`, ana)
	c.pass(7.9)
	c.forget()
	c.count("erased_receipts", 5)
	if got := c.push("m1", ana); got != "duplicate" {
		t.Errorf("the repetition is %s", got)
	}
	c.pass(0.2)
	c.forget()
	c.count("erased_receipts", 0)
}

func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.answered("m", ana)
	c.pass(31)
	tx, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `SELECT fila_forget_turns('clinic', false, 0, 10)`); err != nil {
		t.Fatal(err)
	}
	c.want("the second one at work", 0, `SELECT count(gone) FROM fila_forget_turns('clinic', false, 0, 10)`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.count("turns", 0)
}

// TestAConversationThatIsWrittenTo holds a push between the look at the conversation and its deletion.
func TestAConversationThatIsWrittenTo(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`INSERT INTO conversations (project, phone, address) VALUES ('clinic', $1, $1)`, ana)
	pushing, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pushing.Rollback(context.Background())
	var status string
	if err := pushing.QueryRow(t.Context(), push, "m", ana).Scan(&status); err != nil {
		t.Fatal(err)
	}
	c.forget()
	if err := pushing.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.count("conversations", 1)
	c.forget()
	c.count("conversations", 1)
	if c.drain(ana) == 0 {
		t.Error("the message has no turn")
	}
}

// TestAMessageForAConversationThatGoes lets a push wait for the deletion of its conversation, and make a new one.
func TestAMessageForAConversationThatGoes(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`INSERT INTO conversations (project, phone, address) VALUES ('clinic', $1, $1)`, ana)
	forgetting, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forgetting.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := forgetting.Exec(t.Context(), `SELECT fila_forget_conversations('', '', 10)`); err != nil {
		t.Fatal(err)
	}
	pushed := make(chan error, 1)
	go func() {
		_, err := c.pool.Exec(t.Context(), push, "m", ana)
		pushed <- err
	}()
	c.await(`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%fila_push%')`)
	if err := forgetting.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-pushed; err != nil {
		t.Fatal(err)
	}
	c.count("conversations", 1)
	c.want("lost", 0, `SELECT count(*) FROM fila_lost`)
	if c.drain(ana) == 0 {
		t.Error("the message has no turn")
	}
}

// TestForgettingBesideEverythingElse writes to conversations, acts on them and erases them while they are deleted.
func TestForgettingBesideEverythingElse(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`UPDATE projects SET keep_receipts = '0', keep_turns = '0', keep_dead = '0'`)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var writers sync.WaitGroup
	for writer := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(writer)))
		writers.Go(func() {
			for n := range 200 {
				c.anything(random, fmt.Sprintf("%d-%d", writer, n), fmt.Sprint(ana, random.IntN(3)))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		writers.Wait()
		close(done)
	}()
	f := retention.New(retention.Options{Pool: c.pool, Page: 5, Forgot: func(class string, rows int64) { c.gone[class] += rows }, Log: zerolog.New(zerolog.NewTestWriter(t))})
	for {
		f.Round(t.Context())
		select {
		case <-done:
		default:
			continue
		}
		break
	}
	c.want("lost", 0, `SELECT count(*) FROM fila_lost`)
	c.want("waiting without a conversation", 0,
		`SELECT count(*) FROM fila_mensagens q WHERE NOT EXISTS (SELECT FROM conversations c WHERE c.project = q.projeto AND c.phone = q.telefone)`)
	c.want("open turns without a conversation", 0,
		`SELECT count(*) FROM turns t WHERE t.open AND NOT EXISTS (SELECT FROM conversations c WHERE c.project = t.project AND c.phone = t.phone)`)
	if c.gone["turns"] == 0 || c.gone["receipts"] == 0 {
		t.Errorf("forgotten meanwhile: %v", c.gone)
	}
	c.end()
	c.exec(`SELECT fila_release(project, phone, 'ana') FROM conversations`)
	c.exec(`SELECT fila_drain('clinic', ARRAY(SELECT DISTINCT telefone FROM fila_mensagens), 'here', 30)`)
	c.end()
	f.Round(t.Context())
	for _, table := range []string{"fila_mensagens", "turns", "receipts", "conversations"} {
		c.count(table, 0)
	}
}

// end discards what is open, and hangs up.
func (c *clinic) end() {
	c.Helper()
	c.exec(`SELECT fila_discard(id, 'ana', 'the end') FROM turns WHERE open`)
	c.exec(`SELECT fila_hung_up(id, attempt) FROM turns`)
}

// anything is one step of a conversation. What is refused, since the other steps came first, is refused.
func (c *clinic) anything(random *rand.Rand, id, phone string) {
	step := []string{
		push,
		`SELECT count(*) FROM (SELECT fila_reply('clinic', turn_id, 1, 'ola', '{}', false, true, 'here', 30) FROM fila_drain('clinic', ARRAY[$2], 'here', 30) WHERE turn_id IS NOT NULL AND $1 <> '') r`,
		`SELECT count(*) FROM (SELECT fila_fail(turn_id, 1, 'agent', NULL, 'dead', 'refused', true, 0) FROM fila_drain('clinic', ARRAY[$2], 'here', 30) WHERE turn_id IS NOT NULL AND $1 <> '') r`,
		`SELECT fila_redrive(max(id), 'ana', $1) FROM turns WHERE phone = $2 AND dead`,
		`SELECT fila_takeover('clinic', $2, 0.0001, 'ana', $1)`,
		`SELECT fila_erase('clinic', $2, $1)::text`,
	}[[]int{0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5}[random.IntN(12)]]
	rows, err := c.pool.Query(c.Context(), step, id, phone)
	if err == nil {
		_, err = pgx.CollectRows(rows, func(pgx.CollectableRow) (any, error) { return nil, nil })
	}
	if err == nil {
		return
	}
	if class := postgres.Classify(err); class != postgres.Again && class != postgres.Refused {
		c.Errorf("%s: %v", step, err)
	}
}
