package metrics

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

const phone = "5531999990001"

type clinic struct {
	*testing.T
	*Metrics
	pool *postgres.Pool
	url  string
}

// setup serves the metrics of a database with the projects clinic and other.
func setup(t *testing.T) clinic {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	m := New(Options{Pool: pool, Pools: map[string]*postgres.Pool{"run": pool}})
	server := httptest.NewServer(m.Handler())
	t.Cleanup(server.Close)
	c := clinic{t, m, pool, server.URL}
	for _, name := range []string{"clinic", "other"} {
		c.exec(`SELECT fila_open_project($1, 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`, name)
	}
	return c
}

func (c clinic) exec(sql string, arguments ...any) {
	c.Helper()
	if _, err := c.pool.Exec(c.Context(), sql, arguments...); err != nil {
		c.Fatal(err)
	}
}

// waits accepts messages of the clinic, each a minute and more ago, so that their receipts may be passed.
func (c clinic) waits(texts ...string) {
	c.Helper()
	for _, text := range texts {
		c.exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem) VALUES ($1, $2)`, phone, text)
	}
	c.exec(`SELECT fila_adopt('clinic')`)
	c.exec(`UPDATE receipts SET received_at = received_at - interval '2 minutes'`)
}

// turn makes a turn of what waits, in the state given.
func (c clinic) turn(state string) {
	c.Helper()
	var id int64
	if err := c.pool.QueryRow(c.Context(), `SELECT turn_id FROM fila_drain('clinic', ARRAY[$1], 'here', 30)`, phone).Scan(&id); err != nil {
		c.Fatal(err)
	}
	c.exec(`UPDATE turns SET state = $2, reason = 'the test', finished_at = CASE WHEN $2 IN ('done', 'superseded', 'discarded', 'dead') THEN now() END, lease_until = NULL WHERE id = $1`, id, state)
}

// scrape reads the metrics as Prometheus does: every series with its value.
func (c clinic) scrape() map[string]float64 {
	c.Helper()
	response, err := http.Get(c.url)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		text, _ := io.ReadAll(response.Body)
		c.Fatalf("scrape: %d %s", response.StatusCode, text)
	}
	series := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, found := cutLast(lines.Text())
		if number, err := strconv.ParseFloat(value, 64); found && err == nil && !strings.HasPrefix(name, "#") {
			series[name] = number
		}
	}
	return series
}

func cutLast(line string) (before, after string, found bool) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return line, "", false
	}
	return line[:at], line[at+1:], true
}

func (c clinic) shows(series map[string]float64, want map[string]float64) {
	c.Helper()
	for name, value := range want {
		if got, ok := series[name]; !ok || got != value {
			c.Errorf("%s: want %v, got %v (shown: %v)", name, value, got, ok)
		}
	}
}

func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.Projects([]string{"clinic"})
	series := c.scrape()
	c.shows(series, map[string]float64{
		`fila_messages_total{project="clinic",status="queued"}`: 0, `fila_messages_total{project="clinic",status="duplicate"}`: 0,
		`fila_messages_total{project="clinic",status="ignored"}`: 0, `fila_turns_total{project="clinic",state="done"}`: 0,
		`fila_turns_total{project="clinic",state="superseded"}`: 0, `fila_turns_total{project="clinic",state="discarded"}`: 0,
		`fila_turns_total{project="clinic",state="dead"}`: 0, `fila_turn_lateness_seconds_count{project="clinic"}`: 0,
		`fila_ack_seconds_count{project="clinic"}`: 0, `fila_agent_seconds_count{outcome="unknown",project="clinic"}`: 0,
		`fila_delivery_seconds_count{outcome="not_done",project="clinic"}`: 0, `fila_waiting_messages{project="clinic"}`: 0,
		`fila_oldest_waiting_seconds{project="clinic"}`: 0, `fila_active_turns{project="other",state="unknown"}`: 0,
		`fila_dead_turns{project="other"}`: 0, `fila_lost_messages{project="other"}`: 0, `fila_scrape_errors_total`: 0,
		`fila_pool_max_connections{pool="run"}`: 4,
	})
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", `fila_pool_connections{pool="run",state="used"}`} {
		if _, ok := series[name]; !ok {
			t.Errorf("%s is not shown", name)
		}
	}
}

func TestWhatHappensIsCounted(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.MessageStored("clinic", "queued")
	c.MessageStored("clinic", "queued")
	c.Acked("clinic", 3*time.Millisecond)
	c.TurnEnded("clinic", "dead")
	c.Late("clinic", -time.Millisecond)
	c.Late("clinic", 2*time.Second)
	c.AgentCalled("clinic", "done", 30*time.Second)
	c.DeliveryCalled("clinic", "unknown", 61*time.Second)
	c.shows(c.scrape(), map[string]float64{
		`fila_messages_total{project="clinic",status="queued"}`: 2, `fila_turns_total{project="clinic",state="dead"}`: 1,
		`fila_ack_seconds_bucket{project="clinic",le="0.0025"}`: 0, `fila_ack_seconds_bucket{project="clinic",le="0.005"}`: 1,
		`fila_turn_lateness_seconds_count{project="clinic"}`: 2, `fila_turn_lateness_seconds_sum{project="clinic"}`: 2,
		`fila_agent_seconds_bucket{outcome="done",project="clinic",le="30"}`:         1,
		`fila_delivery_seconds_bucket{outcome="unknown",project="clinic",le="60"}`:   0,
		`fila_delivery_seconds_bucket{outcome="unknown",project="clinic",le="+Inf"}`: 1,
	})
}

func TestWhatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	c := setup(t)
	for _, state := range []string{"dead", "done", "sending"} {
		c.waits("oi")
		c.turn(state)
	}
	c.waits("um", "dois")
	series := c.scrape()
	c.shows(series, map[string]float64{
		`fila_waiting_messages{project="clinic"}`: 2, `fila_waiting_messages{project="other"}`: 0, `fila_active_turns{project="clinic",state="sending"}`: 1,
		`fila_active_turns{project="clinic",state="running"}`: 0, `fila_dead_turns{project="clinic"}`: 1, `fila_lost_messages{project="clinic"}`: 0,
	})
	if oldest := series[`fila_oldest_waiting_seconds{project="clinic"}`]; oldest <= 0 {
		t.Errorf("oldest: want over 0, got %v", oldest)
	}
}

func TestWhatIsSuspendedByWhom(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`UPDATE projects SET on_dead = 'suspend' WHERE name = 'clinic'`)
	c.waits("oi")
	c.exec(`SELECT fila_fail(turn_id, 1, 'agent', NULL, 'dead', 'answered 400', true, 0) FROM fila_drain('clinic', ARRAY[$1], 'here', 30)`, phone)
	c.exec(`SELECT fila_suspend('clinic', $1, 'ana', 'asked for it')`, phone+"1")
	by := func(dead, person float64) {
		t.Helper()
		c.shows(c.scrape(), map[string]float64{
			`fila_suspended_conversations{cause="dead",project="clinic"}`: dead, `fila_suspended_conversations{cause="person",project="clinic"}`: person,
		})
	}
	by(1, 1)
	c.exec(`SELECT fila_resume('clinic', $1, 'answer', 'ana')`, phone)
	by(0, 1)
	c.exec(`SELECT fila_suspend('clinic', $1, 'ana', 'asked for it')`, phone)
	by(0, 2)
}

func TestTheOldestRowOfEachClass(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.shows(c.scrape(), map[string]float64{
		`fila_oldest_row_seconds{class="queue"}`: 0, `fila_oldest_row_seconds{class="receipts"}`: 0, `fila_oldest_row_seconds{class="turns"}`: 0, `fila_oldest_row_seconds{class="dead"}`: 0,
	})
	for _, state := range []string{"dead", "done"} {
		c.waits("oi " + state)
		c.turn(state)
	}
	c.exec(`UPDATE turns SET drained_at = drained_at - interval '1 day', first_at = first_at - interval '2 days'`)
	c.exec(`INSERT INTO fila_mensagens (projeto, telefone, mensagem, timestamp) VALUES ('clinic', $1, 'oi', now() - interval '3 days'), ('other', $1, 'oi', now())`, phone)
	series := c.scrape()
	for class, days := range map[string]float64{"turns": 1, "dead": 2, "queue": 3} {
		if got := series[`fila_oldest_row_seconds{class="`+class+`"}`]; got < days*86400 || got > (days+1)*86400 {
			t.Errorf("%s: %v seconds, want a little over %v days", class, got, days)
		}
	}
	if series[`fila_oldest_row_seconds{class="receipts"}`] < 60 {
		t.Error("the receipts of minutes ago are not shown")
	}
}

func TestLostMessagesAreFoundOnceAndForAll(t *testing.T) {
	t.Parallel()
	c := setup(t)
	lost := func(want float64, when string) {
		t.Helper()
		if got := c.scrape()[`fila_lost_messages{project="clinic"}`]; got != want {
			t.Errorf("%s: want %v lost, got %v (passed %d, open %d)", when, want, got, c.state.lost.passed, len(c.state.lost.open))
		}
	}
	c.waits("um", "dois", "três")
	lost(0, "waiting")
	if c.state.lost.passed == 0 || len(c.state.lost.open) != 3 {
		t.Errorf("want what waits to be passed and open, got %d and %d", c.state.lost.passed, len(c.state.lost.open))
	}
	c.exec(`DELETE FROM fila_mensagens WHERE mensagem = 'dois'`)
	lost(1, "deleted behind the mark")
	c.turn("done")
	lost(1, "after a turn of the others")
	if len(c.state.lost.open) != 1 {
		t.Errorf("open: want the lost one alone, got %d", len(c.state.lost.open))
	}
	c.waits("quatro")
	c.exec(`UPDATE receipts SET received_at = clock_timestamp() WHERE id = (SELECT max(id) FROM receipts)`)
	c.exec(`DELETE FROM fila_mensagens`)
	lost(2, "a fresh one")
	passed := c.state.lost.passed
	lost(2, "a fresh one again")
	if c.state.lost.passed != passed {
		t.Error("a fresh receipt was passed")
	}
	c.exec(`DELETE FROM receipts`)
	lost(0, "once the receipts are gone")
}

// TestASupersededMessageMayBeLost on its way back to the queue: that it was in a turn once does not settle it.
func TestASupersededMessageMayBeLost(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`UPDATE projects SET during_turn = 'supersede'`)
	c.waits("um")
	c.exec(`SELECT fila_drain('clinic', ARRAY[$1], 'here', 30)`, phone)
	if got := c.scrape()[`fila_lost_messages{project="clinic"}`]; got != 0 {
		t.Errorf("%v lost while the turn runs", got)
	}
	c.exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem) VALUES ($1, 'dois')`, phone)
	c.exec(`SELECT fila_adopt('clinic')`)
	c.exec(`SELECT fila_reply('clinic', id, 1, 'ola', ARRAY['ola'], false, true, 'here', 30) FROM turns`)
	c.exec(`DELETE FROM fila_mensagens WHERE superseded`)
	var viewed float64
	if err := c.pool.QueryRow(t.Context(), `SELECT count(*) FROM fila_lost`).Scan(&viewed); err != nil || viewed != 1 {
		t.Errorf("fila_lost shows %v, want the superseded one (%v)", viewed, err)
	}
	c.shows(c.scrape(), map[string]float64{`fila_lost_messages{project="clinic"}`: 1})
}

func TestManyReceiptsAreReadInPages(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`INSERT INTO receipts (id, project, phone, status, reason, received_at)
		SELECT n, 'clinic', '1', CASE WHEN n % 10000 = 0 THEN 'queued' ELSE 'ignored' END, CASE WHEN n % 10000 = 0 THEN NULL ELSE 'team' END, now() - interval '1 hour'
		FROM generate_series(1, $1) n`, 2*lostPage+1000)
	for {
		series := c.scrape()
		if c.state.lost.passed == 2*lostPage+1000 {
			c.shows(series, map[string]float64{`fila_lost_messages{project="clinic"}`: 4})
			return
		}
	}
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.TurnEnded("clinic", "done")
	holder, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), `LOCK TABLE turns, receipts IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	var scrapes sync.WaitGroup
	for range 4 {
		scrapes.Go(func() {
			series := c.scrape()
			if _, ok := series[`fila_dead_turns{project="clinic"}`]; ok {
				t.Error("fila_dead_turns is shown although nobody could look")
			}
			c.shows(series, map[string]float64{`fila_turns_total{project="clinic",state="done"}`: 1})
		})
	}
	scrapes.Wait()
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	series := c.scrape()
	if series[`fila_scrape_errors_total`] == 0 {
		t.Error("fila_scrape_errors_total: want over 0")
	}
	c.shows(series, map[string]float64{`fila_dead_turns{project="clinic"}`: 0})
}
