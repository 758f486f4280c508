package postgres_test

import (
	"testing"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

// prepared is how many statements the server keeps for the connection of a pool that has just been used.
func prepared(t *testing.T, address string) int {
	t.Helper()
	pool := open(t, postgres.Options{URL: address, MaxConns: 1, Name: "fila"})
	for range 3 {
		value[int](t, pool, "SELECT 1")
	}
	return value[int](t, pool, "SELECT count(*)::integer FROM pg_prepared_statements WHERE statement = 'SELECT 1'")
}

func TestStatementsArePreparedWithoutAPooler(t *testing.T) {
	t.Parallel()
	if n := prepared(t, pgtest.Empty(t)); n != 1 {
		t.Errorf("%d statements are prepared, want 1", n)
	}
}

func TestStatementsAreNotPreparedBehindAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "session"} {
		if n := prepared(t, pgtest.Bouncer(t, pgtest.Empty(t), mode)); n != 0 {
			t.Errorf("%s mode: %d statements are prepared", mode, n)
		}
	}
}

// A statement that was prepared before its function answered in another shape is run again, prepared anew.
func TestPreparedBeforeAMigration(t *testing.T) {
	t.Parallel()
	pool := open(t, postgres.Options{URL: pgtest.Empty(t), MaxConns: 1, Name: "fila"})
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE FUNCTION shape() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
	const ask = "SELECT * FROM shape() WHERE $1"
	if got := value[int](t, pool, ask, true); got != 1 {
		t.Errorf("got %d", got)
	}
	exec("DROP FUNCTION shape()")
	exec("CREATE FUNCTION shape() RETURNS text LANGUAGE sql AS $$ SELECT 'two' $$")
	var two string
	err := pool.QueryRow(t.Context(), ask, true).Scan(&two)
	if err == nil || postgres.Classify(err) != postgres.Again {
		t.Fatalf("a statement of another shape: %v, want one that may be run again", err)
	}
	if got := value[string](t, pool, ask, true); got != "two" {
		t.Errorf("got %q", got)
	}
}
