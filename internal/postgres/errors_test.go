package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

func TestClassifyCodes(t *testing.T) {
	t.Parallel()
	for class, codes := range map[postgres.Class]string{
		postgres.Again: "40001 40P01 55P03",
		// No connection, resources, demoted, stopping, cancelled, broken server, no database, no entrance, no schema yet,
		// a session that was idle for too long.
		postgres.Away:    "08000 08006 08P01 53100 53200 53300 25006 57014 57P01 57P03 58030 XX000 XX001 3D000 28P01 28000 42P01 42883 3F000 25P03 25P04",
		postgres.Invalid: "22021 22P05 22P02 22003 22001 23502 23505 23514 54000 54001",
		postgres.Refused: "FI404 FI409 FI422",
		postgres.Broken:  "42601 42703 42501 0A000 21000 25P02 P0001",
	} {
		for code := range strings.FieldsSeq(codes) {
			err := fmt.Errorf("store the turn: %w", &pgconn.PgError{Code: code})
			if got := postgres.Classify(err); got != class {
				t.Errorf("%s: class %d, want %d", code, got, class)
			}
			if got := postgres.Code(err); got != code {
				t.Errorf("%s: code %q", code, got)
			}
		}
	}
}

func TestClassifyTransport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want postgres.Class
	}{
		"refused":        {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, postgres.Away},
		"reset":          {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, postgres.Away},
		"no such host":   {&net.DNSError{Err: "no such host", Name: "db"}, postgres.Away},
		"deadline":       {context.DeadlineExceeded, postgres.Away},
		"cancelled":      {context.Canceled, postgres.Away},
		"cut":            {fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), postgres.Away},
		"closed":         {errors.New("conn closed"), postgres.Away},
		"pool closed":    {errors.New("closed pool"), postgres.Away},
		"no rows":        {pgx.ErrNoRows, postgres.Broken},
		"too many rows":  {pgx.ErrTooManyRows, postgres.Broken},
		"something else": {errors.New("a mistake"), postgres.Broken},
	} {
		if got := postgres.Classify(fmt.Errorf("ask: %w", c.err)); got != c.want {
			t.Errorf("%s: class %d, want %d", name, got, c.want)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func do(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// canary stands for what a patient wrote: wherever it turns up, a log would tell it.
const canary = "tenho-HIV-5531999990001"

func TestSafeTellsNothingOfARow(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Empty(t))
	do(t, conn,
		`CREATE TABLE said (id integer NOT NULL, text text PRIMARY KEY, short varchar(3), number integer CHECK (number > 0), extra jsonb)`,
		`INSERT INTO said (id, text) VALUES (1, '`+canary+`')`,
		`CREATE FUNCTION shout(what text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'heard %', what USING DETAIL = what, HINT = what; END $$`,
	)
	for name, c := range map[string]struct {
		sql  string
		args []any
		keep string
	}{
		"not null":       {`INSERT INTO said (text) VALUES ($1)`, []any{canary + "!"}, "SQLSTATE 23502, table said, column id"},
		"unique":         {`INSERT INTO said (id, text) VALUES (2, $1)`, []any{canary}, "SQLSTATE 23505, constraint said_pkey, table said"},
		"check":          {`INSERT INTO said (id, text, number) VALUES (2, $1, -1)`, []any{canary + "!"}, "constraint said_number_check"},
		"too long":       {`INSERT INTO said (id, text, short) VALUES (2, 'a', $1::text)`, []any{canary}, "SQLSTATE 22001"},
		"no number":      {`SELECT $1::text::integer`, []any{canary}, "SQLSTATE 22P02"},
		"no json":        {`SELECT $1::text::jsonb`, []any{`{"a":` + canary}, "SQLSTATE 22P02"},
		"NUL in json":    {`SELECT $1::text::jsonb`, []any{`{"` + canary + `":"\u0000"}`}, "SQLSTATE 22P05"},
		"no moment":      {`SELECT $1::text::timestamptz`, []any{canary}, "SQLSTATE 22007"},
		"raised":         {`SELECT shout($1)`, []any{canary}, "SQLSTATE P0001"},
		"syntax":         {`SELECT '` + canary + `' FROM FROM`, nil, "SQLSTATE 42601"},
		"not encoded":    {`SELECT $1::integer`, []any{canary}, ""},
		"not encoded, b": {`SELECT $1::text[]`, []any{map[string]string{canary: canary}}, ""},
	} {
		_, err := conn.Exec(t.Context(), c.sql, c.args...)
		said := postgres.Safe(fmt.Errorf("store: %w", err))
		if err == nil || said == "" || strings.Contains(said, canary) || !strings.Contains(said, c.keep) {
			t.Errorf("%s: %q of the error %v", name, said, err)
		}
	}
}

func TestSafeTellsNothingOfAnAnswer(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Empty(t))
	var number int
	for _, sql := range []string{`SELECT '` + canary + `'`, `SELECT 1 AS "` + canary + `", 2`} {
		err := conn.QueryRow(t.Context(), sql).Scan(&number)
		if said := postgres.Safe(err); err == nil || strings.Contains(said, canary) {
			t.Errorf("%q of the error %v", said, err)
		}
	}
}

func TestSafeTellsNothingOfTheAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://clinic:secret@127.0.0.1:1/queue", "postgres://clinic:secret@127.0.0.1:1,127.0.0.1:2/queue",
	} {
		_, err := pgx.Connect(t.Context(), url)
		said := postgres.Safe(err)
		if err == nil || strings.Contains(said, "secret") || postgres.Classify(err) != postgres.Away {
			t.Errorf("%q, class %d", said, postgres.Classify(err))
		}
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.New(t))
	_, err := conn.Exec(t.Context(), `SELECT fila_redrive(1, '', 'again')`)
	if got := postgres.Refusal(err); postgres.Classify(err) != postgres.Refused || got == "" || !strings.Contains(postgres.Safe(err), got) {
		t.Errorf("refusal %q, safe %q, of %v", got, postgres.Safe(err), err)
	}
	_, err = conn.Exec(t.Context(), `SELECT `+canary)
	if got := postgres.Refusal(err); got != "" {
		t.Errorf("a mistake of ours was told as a refusal: %q", got)
	}
}
