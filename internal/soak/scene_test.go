package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"fila/internal/pgtest"
	"fila/internal/postgres/cluster"
	"fila/internal/soak/history"
)

const (
	lease        = 2 * time.Second
	agentTimeout = 3 * time.Second
	instances    = 3
	patients     = 5 // a project
)

// clinics are the projects of the configuration below, as the judge has to know them. The channel of the second one takes every
// call for a new text; the others know a key again.
var clinics = map[string]history.Rules{
	"alegria":  {Debounce: 400 * time.Millisecond, Ceiling: 1200 * time.Millisecond, MaxMessages: 5, Attempts: 5},
	"bemestar": {Debounce: 500 * time.Millisecond, Ceiling: 1500 * time.Millisecond, MaxMessages: 100, Attempts: 5, Once: true},
	"carinho":  {Debounce: 300 * time.Millisecond, Ceiling: time.Second, MaxMessages: 100, Attempts: 5},
}

const configuration = `
lease_seconds: 2
sweep_seconds: 0.3
shutdown_seconds: 4
projects:
  alegria:
    message_debounce_seconds: 0.4
    max_wait_seconds: 1.2
    max_messages: 5
    during_turn: queue
    agent: {url: %[1]q, timeout_seconds: 3, headers: {X-Soak-Instance: "${SOAK_INSTANCE}"}, on_unknown: retry}
    delivery: {type: http, url: %[2]q, timeout_seconds: 2, headers: {X-Soak-Instance: "${SOAK_INSTANCE}"}, on_unknown: retry}
    retry: {attempts: 5, min_seconds: 0.1, max_seconds: 0.5}
    takeover: {minutes: 0.02, messages: hold}
  bemestar:
    message_debounce_seconds: 0.5
    max_wait_seconds: 1.5
    during_turn: supersede
    concurrency: 3
    agent: {url: %[1]q, timeout_seconds: 3, headers: {X-Soak-Instance: "${SOAK_INSTANCE}"}, on_unknown: retry}
    delivery: {type: http, url: %[2]q, timeout_seconds: 2, headers: {X-Soak-Instance: "${SOAK_INSTANCE}"}, on_unknown: hold}
    retry: {attempts: 5, min_seconds: 0.1, max_seconds: 0.5}
    takeover: {minutes: 0.02, messages: ignore}
  carinho:
    message_debounce_seconds: 0.3
    max_wait_seconds: 1
    during_turn: queue
    agent: {url: %[1]q, timeout_seconds: 3, headers: {X-Soak-Instance: "${SOAK_INSTANCE}"}, on_unknown: reconcile, reconcile_url: %[1]q}
    delivery: {type: http, url: %[2]q, timeout_seconds: 2, headers: {X-Soak-Instance: "${SOAK_INSTANCE}"}, on_unknown: reconcile, reconcile_url: %[2]q}
    retry: {attempts: 5, min_seconds: 0.1, max_seconds: 0.5}
    takeover: {minutes: 0.02, messages: hold}
`

// soak is one run and everybody in it.
type soak struct {
	testing.TB
	options
	folder  string
	record  *record
	tally   *tally
	cluster *cluster.Cluster
	pool    *pgxpool.Pool
	fleet   *fleet
	agent   *agent
	channel *channel
	entry   *entry
	person  *person
	aim     *aim
}

// begin brings everything up; nothing hurts yet.
func begin(t testing.TB, o options) *soak {
	t.Helper()
	s := &soak{TB: t, options: o, record: newRecord(), tally: newTally()}
	s.folder = s.makeFolder()
	s.cluster = pgtest.Server(t, map[string]string{"max_connections": "250"})
	s.pool = s.openPool()
	s.entry = newEntry(s)
	s.agent, s.channel = newAgent(s), newChannel(s)
	asks, sends := httptest.NewServer(s.agent), httptest.NewServer(s.channel)
	t.Cleanup(func() { s.agent.close(); asks.Close(); s.channel.close(); sends.Close() })
	s.person, s.aim = newPerson(s), newAim(s)
	s.fleet = newFleet(s, fmt.Sprintf(configuration, asks.URL, sends.URL))
	s.fleet.startAll()
	s.prepare()
	return s
}

// makeFolder is where configuration, program and logs lie; FILA_SOAK_KEEP keeps that of a failed run.
func (s *soak) makeFolder() string {
	keep := os.Getenv("FILA_SOAK_KEEP")
	if keep == "" {
		return s.TempDir()
	}
	folder, err := os.MkdirTemp(keep, "soak-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = os.Remove(filepath.Join(folder, "fila"))
		if !s.Failed() {
			_ = os.RemoveAll(folder)
			return
		}
		s.Logf("logs and history are kept in %s", folder)
	})
	return folder
}

func (s *soak) openPool() *pgxpool.Pool {
	pool, err := pgxpool.New(s.Context(), s.cluster.URL("postgres"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(pool.Close)
	return pool
}

// prepare watches the turns' rows, and breaks the service where the run shall show that this is noticed.
func (s *soak) prepare() {
	s.Helper()
	files := []string{"watch.sql"}
	if s.fault != "" {
		files = append(files, "edit.sql", s.fault+".sql")
	}
	script := ""
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			s.Fatal(err)
		}
		script += string(text)
	}
	if _, err := s.pool.Exec(s.Context(), script, pgx.QueryExecModeSimpleProtocol); err != nil {
		s.Fatalf("prepare the database: %v", err)
	}
}

// run hurts the service for as long as wanted, lets it settle, and judges.
func (s *soak) run() (history.Report, *tally) {
	living, die := context.WithCancel(s.Context())
	defer die()
	writing, stopWriting := context.WithTimeout(living, s.length)
	defer stopWriting()

	var writers, others sync.WaitGroup
	s.startPatients(writing, living, &writers)
	for _, work := range []func(context.Context){s.person.intervene, s.person.resolve, s.aim.listen, s.sampleLost} {
		others.Go(func() { work(living) })
	}
	newChaos(s).run(writing)
	s.agent.calm()
	s.channel.calm()
	s.person.calm()
	calm := time.Now()
	writers.Wait()
	s.settle(living, calm.Add(lease+agentTimeout+10*time.Second))
	die()
	others.Wait()
	s.fleet.stopAll()
	s.agent.close()

	h := s.record.all()
	s.readTables(h)
	s.keep(h)
	report := h.Check()
	s.tally.read(h, report)
	return report, s.tally
}

// settle waits until nothing is open or waits any more.
func (s *soak) settle(ctx context.Context, deadline time.Time) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	left := "nothing could be read"
	for pause(ctx, 50*time.Millisecond) {
		err := s.pool.QueryRow(ctx, leftStatement).Scan(&left)
		if err == nil && left == "" {
			s.record.settled("")
			return
		}
	}
	s.record.settled(left)
}

const leftStatement = `
	SELECT concat_ws('; ',
		(SELECT string_agg('turn ' || id || ' of ' || project || ' ' || phone || ' is ' || state, ', ') FROM turns WHERE open),
		(SELECT string_agg(DISTINCT 'messages of ' || projeto || ' ' || telefone || ' wait', ', ') FROM fila_mensagens))`

// sampleLost looks at the conservation law as often as that does not slow the database down.
func (s *soak) sampleLost(ctx context.Context) {
	wait := 300 * time.Millisecond
	for pause(ctx, wait) {
		began := time.Now()
		var lost int
		if s.pool.QueryRow(ctx, `SELECT count(*) FROM fila_lost`).Scan(&lost) == nil {
			s.record.lost(lost)
		}
		wait = max(wait, 20*time.Since(began))
	}
}

// keep leaves the history behind where somebody wants to look at a failed run.
func (s *soak) keep(h *history.History) {
	if os.Getenv("FILA_SOAK_KEEP") == "" {
		return
	}
	text, err := json.MarshalIndent(h, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.folder, "history.json"), text, 0o600)
	}
	if err != nil {
		s.Logf("history not kept: %v", err)
	}
}

// pause waits, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
