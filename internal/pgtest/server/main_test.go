package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"fila/internal/pgtest"
)

func TestContainer(t *testing.T) {
	t.Parallel()
	if err := engine(t.Context()); err != nil {
		if os.Getenv("FILA_TEST_DOCKER") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s, err := container(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	conn, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "create database clinic"); err != nil {
		t.Error(err)
	}
}

// The variables are the whole program's, so these cases take turns.
func TestRun(t *testing.T) {
	const named = "postgres://nobody@127.0.0.1:1/none"
	for _, tt := range []struct {
		name   string
		named  string
		script string // $1 is the named server
		want   int
	}{
		{"a named server is passed on", named, `test "$FILA_TEST_DATABASE_URL" = "$1"`, 0},
		{"a server of one's own is not called temporary", named, `test -z "$FILA_TEST_DATABASE_TEMPORARY"`, 0},
		{"without one the command gets another", "", `test -n "$FILA_TEST_DATABASE_URL" && test -n "$FILA_TEST_DATABASE_TEMPORARY"`, 0},
		{"the command's exit code is ours", named, "exit 7", 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(pgtest.URLVariable, tt.named)
			t.Setenv(pgtest.TemporaryVariable, "")
			code, err := run(t.Context(), []string{"--", "sh", "-c", tt.script, "sh", tt.named}, io.Discard)
			if code != tt.want || err != nil {
				t.Errorf("got %d, %v; want %d", code, err, tt.want)
			}
		})
	}
}

func TestRunWithoutCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--"}} {
		if code, err := run(t.Context(), args, io.Discard); code != 2 || err == nil || !strings.Contains(err.Error(), "command") {
			t.Errorf("%v: got %d, %v", args, code, err)
		}
	}
}
