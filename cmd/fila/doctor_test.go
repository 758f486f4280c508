package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

// installation is a durable server with a schema, and a configuration for it.
func installation(t *testing.T) (env map[string]string, exec func(string)) {
	t.Helper()
	url := pgtest.Server(t, nil).URL("postgres")
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
	return map[string]string{"FILA_DATABASE_URL": url, "FILA_CONFIG": file(t, goodFile)}, exec
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	env, exec := installation(t)
	command(t, env, "doctor").expect(t, 0, "Postgres", "can be written to", "up to date", "fila.yaml is valid")
	command(t, env, "doctor", "--json").expect(t, 0, `"severity": "ok"`)

	exec(`INSERT INTO receipts (id, project, message_id, phone, status) VALUES (1, 'clinic', 'lost', '56', 'queued')`)
	exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem, timestamp) VALUES ('55', 'x', now() - interval '1 hour')`)
	exec(`ALTER ROLE postgres SET synchronous_commit = off`)
	command(t, env, "doctor").expect(t, 1, "messages: 1 accepted and in no fate", "queue: 1 inserted by other programs", "synchronous_commit is off", "3 errors found")
}

func TestDoctorOfTheConfiguration(t *testing.T) {
	t.Parallel()
	env := map[string]string{"FILA_DATABASE_URL": pgtest.New(t), "FILA_CONFIG": file(t, goodFile+"    webhook: {}\n    message_debounce_seconds: 16\n    retry: {attempts: 2}\nadmin_token: curto\n")}
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

func TestClockDifference(t *testing.T) {
	t.Parallel()
	asked := time.Unix(1000, 0)
	for clock, want := range map[float64]time.Duration{1000.5: 0, 1001: 0, 990: 10 * time.Second, 1004: 3 * time.Second} {
		if got := (server{clock: clock}).clockDifference(asked, asked.Add(time.Second)); got != want {
			t.Errorf("%v: got %v, want %v", clock, got, want)
		}
	}
}
