package pgtest_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"fila/internal/pgtest"
)

func value[T any](t *testing.T, url, sql string, args ...any) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestNew(t *testing.T) {
	t.Parallel()
	const insert = "create table of_this_test as select 1 as n"

	for _, name := range []string{"one test", "another", "a third"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.New(t)
			if !value[bool](t, url, "select to_regclass('fila_mensagens') is not null") {
				t.Error("the database has no schema")
			}
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			if _, err := conn.Exec(t.Context(), insert); err != nil {
				t.Errorf("the database is another test's too: %v", err)
			}
		})
	}
}

func TestDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("test", func(t *testing.T) {
		name = value[string](t, pgtest.Empty(t), "select current_database()")
	})
	if value[bool](t, pgtest.Empty(t), "select exists (select from pg_database where datname = $1)", name) {
		t.Errorf("%s is still there", name)
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	if n := value[int](t, pgtest.Empty(t), "select count(*) from pg_tables where schemaname = 'public'"); n != 0 {
		t.Errorf("the database has %d tables", n)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t, map[string]string{"work_mem": "5MB"})
	url := c.URL("postgres")
	if got := value[string](t, url, "select current_setting('work_mem') || current_setting('fsync')"); got != "5MBon" {
		t.Errorf("got %q", got)
	}
	if err := syscall.Kill(c.PID(), syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
}
