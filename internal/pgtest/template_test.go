package pgtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
)

// run does something on the database of that URL.
func run(ctx context.Context, url, sql string) error {
	return onServer(ctx, url, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	server := Server(t, nil).URL("postgres")

	t.Run("is made once by many at a time", func(t *testing.T) {
		t.Parallel()
		var made atomic.Int32
		tpl := template{server: server, name: "raced", migrate: func(ctx context.Context, url string) error {
			made.Add(1)
			return run(ctx, url, "create table ready ()")
		}}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := tpl.ensure(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if made.Load() != 1 {
			t.Errorf("made %d times", made.Load())
		}
		if err := run(t.Context(), create(t, server, tpl.name), "select from ready"); err != nil {
			t.Error(err)
		}
	})

	t.Run("is made anew after a failure", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("broken")
		tpl := template{server: server, name: "broken", migrate: func(ctx context.Context, url string) error {
			return errors.Join(run(ctx, url, "create table ready ()"), broken)
		}}
		if err := tpl.ensure(t.Context()); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		tpl.migrate = func(ctx context.Context, url string) error { return run(ctx, url, "create table ready ()") }
		if err := tpl.ensure(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	seen := map[string]string{}
	for name, files := range map[string]fstest.MapFS{
		"one":     {"1.sql": file("create")},
		"changed": {"1.sql": file("create ")},
		"renamed": {"2.sql": file("create")},
		"two":     {"1.sql": file("create"), "2.sql": file("")},
	} {
		key, err := fingerprint(files)
		if err != nil {
			t.Fatal(err)
		}
		if other, known := seen[key]; known {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		seen[key] = name
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"postgres://u:p@host:1/postgres?sslmode=disable": "postgres://u:p@host:1/x?sslmode=disable",
		"postgresql://host":                      "postgresql://host/x",
		"postgres://postgres@/a?host=%2Ftmp%2Fs": "postgres://postgres@/x?host=%2Ftmp%2Fs",
		"host=localhost password=secret":         "",
		"postgres://u:secret@host:port/":         "",
	} {
		got, err := withDatabase(server, "x")
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v; want %q", server, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}
