package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/config"
	"fila/internal/pgtest"
	"fila/internal/postgres"
	statement "fila/sql"
)

// installation is a durable server with a schema and these settings, an agent that answers, and a configuration for both. Nothing
// but HEAD and OPTIONS may reach the agent.
func installation(t *testing.T, settings map[string]string) (env map[string]string, exec func(string)) {
	t.Helper()
	url := pgtest.Server(t, settings).URL("postgres")
	if _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec = func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`SELECT fila_open_project('clinic', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`)
	return map[string]string{"FILA_DATABASE_URL": url, "FILA_CONFIG": file(t, withAgent(answering(t)))}, exec
}

// answering is the address of somebody who refuses HEAD by hanging up, as some servers do.
func answering(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodHead:
			panic(http.ErrAbortHandler)
		case http.MethodOptions:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			t.Errorf("the doctor called with %s", r.Method)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func withAgent(address string) string {
	return strings.Replace(goodFile, "http://127.0.0.1:9", address, 1)
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	env, exec := installation(t, nil)
	command(t, env, "doctor").expect(t, 0, "Postgres", "can be written to", "up to date", "fila.yaml is valid", "agent.url answers", "none between us", "97", "nobody holds an old snapshot", "the newest 0 were looked at")
	command(t, env, "doctor", "--json").expect(t, 0, `"severity": "ok"`)

	exec(`INSERT INTO receipts (id, project, message_id, phone, status) VALUES (1, 'clinic', 'lost', '56', 'queued')`)
	exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem, timestamp) VALUES ('55', 'x', now() - interval '1 hour')`)
	exec(`ALTER ROLE postgres SET synchronous_commit = off`)
	exec(`ALTER TABLE turns SET (autovacuum_enabled = false)`)
	exec(`ALTER TABLE receipts SET (autovacuum_enabled = off)`)
	command(t, env, "doctor").expect(t, 1, "messages: 1 accepted and in no fate", "queue: 1 inserted by other programs", "synchronous_commit is off", "autovacuum is off for receipts, turns", "4 errors found")
}

func TestDoctorOfTheConfiguration(t *testing.T) {
	t.Parallel()
	env := map[string]string{"FILA_DATABASE_URL": pgtest.New(t), "FILA_CONFIG": file(t, withAgent(answering(t))+"    webhook: {}\n    message_debounce_seconds: 16\n    retry: {attempts: 2}\nadmin_token: curto\n")}
	command(t, env, "doctor").expect(t, 1, "16", "admin_token is shorter", "fsync is off")
	env["FILA_CONFIG"] = file(t, "colour: red\n"+goodFile)
	command(t, env, "doctor").expect(t, 1, "colour")
}

func TestDoctorWithoutADatabase(t *testing.T) {
	t.Parallel()
	env := map[string]string{"FILA_CONFIG": file(t, goodFile), "FILA_DATABASE_URL": "postgres://fila@127.0.0.1:1/none?sslmode=disable"}
	command(t, env, "doctor").expect(t, 1, "error    database: ", "check that the database runs")
	env["FILA_DATABASE_URL"] = pgtest.Empty(t)
	command(t, env, "doctor").expect(t, 1, "run fila migrate")
}

func TestDoctorOfACarelessServer(t *testing.T) {
	t.Parallel()
	env, exec := installation(t, map[string]string{
		"full_page_writes": "off", "autovacuum": "off", "max_connections": "12", "superuser_reserved_connections": "1", "max_locks_per_transaction": "10",
	})
	for n := range 6 {
		exec(fmt.Sprintf(`SELECT fila_open_project('p%d', 'BR', 0, 0, 100, ' ', 'queue', 3, 'suspend', true, 3600, 'ignore', '', false)`, n))
	}
	exec(`SELECT fila_push(ARRAY['p1'], ARRAY['a'], ARRAY['55'], ARRAY['55'], ARRAY['x'], ARRAY['text'], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY[NULL])`)
	exec(`SELECT fila_fail(turn_id, 1, 'agent', NULL, 'dead', 'answered 400', true, 0) FROM fila_drain('p1', ARRAY['55'], 'here', 30)`)
	command(t, env, "doctor").expect(t, 1, "full_page_writes is off", "autovacuum is off", "raise max_connections", "raise max_locks_per_transaction",
		"turns: 1 dead", "conversations: 1 suspended since a turn died")
}

func TestDoctorBehindAPooler(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"session": "ok       pooler: " + string(perSession), "transaction": "ok       pooler: " + string(perTransaction), "statement": "error    pooler: " + string(perStatement),
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			behind := pgtest.Bouncer(t, pgtest.New(t), mode)
			env := map[string]string{"FILA_DATABASE_URL": behind, "FILA_CONFIG": file(t, withAgent(answering(t)))}
			command(t, env, "doctor").expect(t, 1, want, "nobody holds an old snapshot", "every accepted message is in its place")
		})
	}
}

func TestDoctorKnocks(t *testing.T) {
	t.Parallel()
	silent := httptest.NewTLSServer(http.NotFoundHandler())
	defer silent.Close()
	config := func(address string) *config.Config {
		return &config.Config{Projects: map[string]*config.Project{"clinic": {Name: "clinic", Agent: config.Agent{URL: address}}}}
	}
	for address, want := range map[string]finding{
		answering(t):                       {fine, "reach", "projects.clinic.agent.url answers"},
		"http://127.0.0.1:1/x?key=segredo": {failing, "reach", "connection refused"},
		"http://127.0.0.1:1" + demoPath:    {warning, "reach", "demo agent"},
		silent.URL:                         {failing, "reach", "its certificate is not accepted"},
	} {
		var found checkup
		examineAddresses(t.Context(), config(address), &found)
		if len(found) != 1 || found[0].Severity != want.Severity || !strings.Contains(found[0].Text, want.Text) || strings.Contains(found[0].Text, "segredo") {
			t.Errorf("%s: %v, want %v", address, found, want)
		}
	}
}

func TestDoctorMissesSecretsOnTheWayOutside(t *testing.T) {
	t.Parallel()
	settings := &config.Config{Projects: map[string]*config.Project{
		"here":  {Agent: config.Agent{URL: "http://localhost:1/"}, Delivery: config.Delivery{Type: "http", URL: "http://127.0.0.1:1/"}},
		"there": {Agent: config.Agent{URL: "https://agent.example/"}, Delivery: config.Delivery{Type: "http", URL: "https://out.example/", SigningSecret: "x"}},
	}}
	if got := missingSecrets(settings); !slices.Equal(got, []string{"projects.there.agent.signing_secret"}) {
		t.Errorf("got %v", got)
	}
}

func TestDoctorOfOldSnapshots(t *testing.T) {
	t.Parallel()
	name := "process 7"
	for _, tt := range []struct {
		old          time.Duration
		transactions int64
		seen         bool
		want         severity
	}{
		{0, 0, true, fine}, {0, 0, false, hint}, {9 * time.Minute, 100, true, fine}, {11 * time.Minute, 100, true, warning}, {0, 2_000_000, false, warning},
	} {
		var found checkup
		seconds := tt.old.Seconds()
		holder{name: &name, seconds: &seconds, transactions: &tt.transactions, seen: tt.seen}.report(&found)
		if found[0].Severity != tt.want {
			t.Errorf("%+v: %v", tt, found)
		}
	}
	var found checkup
	holder{seen: true}.report(&found)
	holder{name: &name, transactions: new(int64(2_000_000))}.report(&found)
	if found[0].Severity != fine || found[1].Severity != warning {
		t.Errorf("got %v", found)
	}
}

func TestDoctorSeesWhoKeepsVacuumWaiting(t *testing.T) {
	t.Parallel()
	env, exec := installation(t, map[string]string{"wal_level": "logical", "max_prepared_transactions": "2"})
	conn, err := pgx.Connect(t.Context(), env["FILA_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	oldest := func() string {
		t.Helper()
		var h holder
		if err := conn.QueryRow(t.Context(), statement.Named("doctor_snapshot")).Scan(&h.seen, &h.name, &h.seconds, &h.transactions); err != nil {
			t.Fatal(err)
		}
		if h.name == nil {
			return ""
		}
		return *h.name
	}
	if got := oldest(); got != "" {
		t.Errorf("%s keeps something", got)
	}
	for _, step := range []struct{ begin, want, end string }{
		{`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1`, "idle in transaction", `COMMIT`},
		{`BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'forgotten'`, "prepared transaction forgotten", `ROLLBACK PREPARED 'forgotten'`},
		{`SELECT pg_create_logical_replication_slot('left', 'test_decoding')`, "replication slot left", `SELECT pg_drop_replication_slot('left')`},
	} {
		exec(step.begin)
		if got := oldest(); !strings.Contains(got, step.want) {
			t.Errorf("%s: %q keeps something", step.begin, got)
		}
		exec(step.end)
	}
}

func TestDoctorOfAFullLog(t *testing.T) {
	t.Parallel()
	env, exec := installation(t, map[string]string{"max_wal_size": "32MB", "min_wal_size": "32MB", "wal_keep_size": "1GB"})
	for range 8 {
		exec(`SELECT pg_logical_emit_message(false, 'fill', 'x')`)
		exec(`SELECT pg_switch_wal()`)
	}
	command(t, env, "doctor").expect(t, 0, "warning  disk: the write-ahead log takes", "times max_wal_size")
}

func TestDoctorWithFewRights(t *testing.T) {
	t.Parallel()
	env, exec := installation(t, nil)
	exec(`CREATE ROLE looker LOGIN`)
	exec(`GRANT fila_support TO looker`)
	env["FILA_DATABASE_URL"] = strings.Replace(env["FILA_DATABASE_URL"], "postgres://postgres@", "postgres://looker@", 1)
	command(t, env, "doctor").expect(t, 0, "hint     vacuum: ", "hint     disk: ", "GRANT pg_monitor", "every accepted message is in its place")
}

func TestDoctorLooksAtSomeOfTheLedger(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.exec(`INSERT INTO receipts (id, project, message_id, phone, status, reason)
		SELECT n * 10, 'clinic', n::text, '55', CASE WHEN n IN (1, 99) THEN 'queued' ELSE 'ignored' END, CASE WHEN n NOT IN (1, 99) THEN 'empty' END
		FROM generate_series(1, 100) n`)
	for look, want := range map[int][2]int64{10: {1, 10}, 100: {2, 100}, 1000: {2, 100}} {
		var lost, looked int64
		if err := o.pool.QueryRow(t.Context(), statement.Named("doctor_lost"), look).Scan(&lost, &looked); err != nil || [2]int64{lost, looked} != want {
			t.Errorf("of %d: %d of %d are lost, error %v", look, lost, looked, err)
		}
	}
}

func TestDoctorWaitsForNobody(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	var found checkup
	address{key: "agent.url", url: silent.URL + "?key=segredo"}.examine(t.Context(), &http.Client{Timeout: 20 * time.Millisecond}, &found)
	if found[0].Severity != failing || !strings.Contains(found[0].Text, "no answer within") || strings.Contains(found[0].Text, "segredo") {
		t.Errorf("got %v", found)
	}
}

func TestClockDifference(t *testing.T) {
	t.Parallel()
	asked := time.Unix(1000, 0)
	for clock, want := range map[float64]time.Duration{1000.5: 0, 1001: 0, 990: 10 * time.Second, 1004: 3 * time.Second} {
		if got := (server{clock: clock}).clockDifference(asked, asked.Add(time.Second)); got != want {
			t.Errorf("%v: got %v, want %v", clock, got, want)
		}
	}
}
