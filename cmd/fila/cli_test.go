package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"fila/internal/pgtest"
)

// ran is what a command left behind.
type ran struct {
	code     int
	out, err string
}

// command runs one with this environment and nothing else.
func command(t *testing.T, env map[string]string, args ...string) ran {
	t.Helper()
	var out, err bytes.Buffer
	lookup := func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	code := run(t.Context(), args, strings.NewReader(""), &out, &err, lookup)
	return ran{code: code, out: out.String(), err: err.String()}
}

func (r ran) expect(t *testing.T, code int, words ...string) ran {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d: %s%s", r.code, code, r.out, r.err)
	}
	for _, word := range words {
		if !strings.Contains(r.out+r.err, word) {
			t.Errorf("%q is not in %q", word, r.out+r.err)
		}
	}
	if r.code != 0 && strings.Count(r.err, "\n") != 1 {
		t.Errorf("standard error is not one line: %q", r.err)
	}
	return r
}

// operator is someone at a terminal, with a database of two projects whose bursts are due at once.
type operator struct {
	*testing.T
	pool *pgxpool.Pool
	url  string
}

const phone = "5531999990001"

func newOperator(t *testing.T) operator {
	t.Helper()
	o := operator{T: t, url: pgtest.New(t)}
	pool, err := pgxpool.New(t.Context(), o.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o.pool = pool
	for _, name := range []string{"clinic", "other"} {
		o.exec(`SELECT fila_open_project($1, 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`, name)
	}
	return o
}

func (o operator) run(args ...string) ran {
	o.Helper()
	return command(o.T, map[string]string{"FILA_DATABASE_URL": o.url, "FILA_CONFIG": "/no/such/file.yaml"}, args...)
}

// json runs a command whose output must be one JSON document.
func (o operator) json(into any, args ...string) {
	o.Helper()
	r := o.run(append(args, "--json")...).expect(o.T, 0)
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		o.Fatalf("%v printed %q: %v", args, r.out, err)
	}
}

func (o operator) exec(sql string, args ...any) {
	o.Helper()
	if _, err := o.pool.Exec(o.Context(), sql, args...); err != nil {
		o.Fatal(err)
	}
}

func lookUp[T any](o operator, sql string, args ...any) (value T) {
	o.Helper()
	if err := o.pool.QueryRow(o.Context(), sql, args...).Scan(&value); err != nil {
		o.Fatal(err)
	}
	return value
}

func (o operator) push(project, phone, text string) {
	o.Helper()
	o.exec(`SELECT fila_push(ARRAY[$1], ARRAY['id-' || $3], ARRAY[$2], ARRAY[$2], ARRAY[$3], ARRAY['text'], ARRAY['Maria'],
		ARRAY[NULL], ARRAY[NULL], ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY[NULL])`, project, phone, text)
}

// turn makes a running turn of one message and returns its id.
func (o operator) turn(project, phone, text string) string {
	o.Helper()
	o.push(project, phone, text)
	return lookUp[string](o, `SELECT turn_id::text FROM fila_drain($1, ARRAY[$2], 'instance-1', 30)`, project, phone)
}

// dead makes a turn that failed for good.
func (o operator) dead(project, phone, text string) string {
	o.Helper()
	id := o.turn(project, phone, text)
	o.exec(`SELECT fila_fail($1::text::bigint, 1, 'agent', NULL, 'dead', 'status 500', true, 0)`, id)
	return id
}

func (o operator) state(id string) string {
	o.Helper()
	return lookUp[string](o, `SELECT state FROM turns WHERE id = $1::text::bigint`, id)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		want string
	}{
		{"frobnicate", `unknown command "frobnicate"`},
		{"statu", `did you mean "status"?`},
		{"serve --no-such-flag", "unknown flag: --no-such-flag"},
		{"serve now", `unexpected argument "now"`},
		{"turns show", "ID is missing"},
		{"turns show 12x", "whole number"},
		{"turns frobnicate", `unknown command "frobnicate"`},
		{"turns --state asleep", "asleep"},
		{"turns --limit 0", "between 1 and"},
		{"turns --limit many", "many"},
		{"dead", "needs a command"},
		{"dead frobnicate", "frobnicate"},
		{"dead redrive --by ana --reason x", "ID is missing"},
		{"dead redrive 1 --by ana", "--reason is missing"},
		{"dead discard 1 --reason x", "--by is missing"},
		{"dead discard --all --by ana --reason x", "--all"},
		{"dead redrive 1 --all --by ana --reason x", "either IDs"},
		{"dead redrive --project= --by ana --reason x", "--project is empty"},
		{"dead redrive --all --project a --by ana --reason x", "exclude each other"},
		{"turns --phone \xff", "argument 3 is not UTF-8"},
		{"conversation show", "PROJECT is missing"},
		{"conversation show clinic", "PHONE is missing"},
		{"conversation takeover clinic 55", "--by is missing"},
		{"conversation suspend clinic 55 --by ana", "--reason is missing"},
		{"conversation resume clinic 55 --by ana --waiting burn", "burn"},
		{"import --project clinic", "--table is missing"},
		{"import --project clinic --table a.b.c", "SCHEMA.TABLE"},
		{"migrate sideways", "sideways"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			r := command(t, nil, strings.Fields(tt.args)...).expect(t, 2, tt.want, "--help")
			if r.out != "" {
				t.Errorf("standard output %q", r.out)
			}
		})
	}
}

func TestBlankIsMissing(t *testing.T) {
	t.Parallel()
	command(t, nil, "dead", "discard", "1", "--by", " ", "--reason", "x").expect(t, 2, "--by is missing")
	command(t, nil, "conversation", "show", "clinic", " ").expect(t, 2, "PHONE is empty")
	command(t, nil, "conversation", "flush", "", phone).expect(t, 2, "PROJECT is empty")
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "conversation", "--help": "conversation", "dead redrive --help": "--dry-run", "version": "go1.", "version --json": `"go": "go1.`, "--version": "fila",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if r := command(t, nil, strings.Fields(args)...).expect(t, 0, want); r.err != "" || strings.Contains(r.out, "\x1b[") {
				t.Errorf("standard error %q, output %q", r.err, r.out)
			}
		})
	}
}

const goodFile = `projects:
  clinic:
    token: segredo-do-token
    agent: {url: "http://127.0.0.1:9/agent"}
    delivery: {type: log}
`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fila.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheck(t *testing.T) {
	t.Parallel()
	r := command(t, nil, "check", "--config", file(t, goodFile)).expect(t, 0, "message_debounce_seconds", "part_max_chars")
	if strings.Contains(r.out, "segredo") {
		t.Error("a secret is shown")
	}
	var document map[string]any
	r = command(t, map[string]string{"FILA_CONFIG": file(t, goodFile)}, "check", "--json").expect(t, 0)
	if err := json.Unmarshal([]byte(r.out), &document); err != nil {
		t.Errorf("printed %q: %v", r.out, err)
	}
}

func TestCheckWarns(t *testing.T) {
	t.Parallel()
	r := command(t, nil, "check", "--config", file(t, goodFile+"    message_debounce_seconds: 16\n")).expect(t, 0)
	if !strings.Contains(r.err, "warning: ") || !strings.Contains(r.err, "16") {
		t.Errorf("standard error %q", r.err)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	command(t, nil, "check", "--config", "/no/such/file.yaml").expect(t, 2, "/no/such/file.yaml")
	command(t, nil, "check", "--config", file(t, goodFile+"    adaptive: {min_seconds: 1, max_seconds: 5}\n    colour: red\n")).expect(t, 2, "colour")
	r := command(t, nil, "check", "--config", file(t, "lissten: x\n"+goodFile+"    colour: red\n"))
	if faults := strings.Split(strings.TrimSpace(r.err), "\n"); r.code != 2 || len(faults) != 2 || !strings.Contains(faults[0], ":1: lissten") {
		t.Errorf("exit code %d, faults %q", r.code, faults)
	}
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	unreachable := map[string]string{"FILA_DATABASE_URL": "postgres://fila:geheim@127.0.0.1:1/none?sslmode=disable"}
	for _, args := range []string{"status", "turns", "dead list", "conversation show clinic 55", "migrate", "migrate status", "import --project a --table b"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			r := command(t, unreachable, strings.Fields(args)...).expect(t, 1, "FILA_DATABASE_URL")
			if strings.Contains(r.err, "geheim") {
				t.Errorf("the password is shown: %q", r.err)
			}
		})
	}
	command(t, map[string]string{"FILA_DATABASE_URL": "http://x"}, "status").expect(t, 1, "postgres://user:password@host")
	command(t, nil, "status").expect(t, 1, "start", "FILA_DATABASE_URL")
}

func TestDatabaseOfTheConfiguration(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	path := file(t, "database_url: "+o.url+"\n"+goodFile)
	command(t, nil, "status", "--config", path).expect(t, 0, "clinic")
	command(t, map[string]string{"FILA_CONFIG": file(t, "colour: red\n"+goodFile)}, "status").expect(t, 2, "colour")
}

func TestOldSchema(t *testing.T) {
	t.Parallel()
	env := map[string]string{"FILA_DATABASE_URL": pgtest.Empty(t)}
	command(t, env, "status").expect(t, 1, "run fila migrate")
	command(t, env, "migrate", "status").expect(t, 0, "missing", "00001_queue.sql")
	command(t, env, "migrate").expect(t, 0, "migrations applied")
	command(t, env, "migrate", "up").expect(t, 0, "up to date")
	command(t, env, "migrate", "status", "--json").expect(t, 0, `"applied": true`)
	command(t, env, "status").expect(t, 0, "No project")
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err bytes.Buffer
	code := run(ctx, []string{"status"}, strings.NewReader(""), &out, &err, func(name string) (string, bool) { return o.url, name == "FILA_DATABASE_URL" })
	if code != 1 || !strings.Contains(err.String(), "interrupted") {
		t.Errorf("exit code %d, %q", code, err.String())
	}
}
