package postgres_test

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pressly/goose/v3"

	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/migrations"
)

func TestMigrateRace(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	var all sync.WaitGroup
	var steps atomic.Int32
	for range 6 {
		all.Go(func() {
			done, err := postgres.Migrate(t.Context(), url)
			if err != nil {
				t.Error(err)
			}
			steps.Add(int32(done))
		})
	}
	all.Wait()
	list, err := postgres.Migrations(t.Context(), url)
	if err != nil || int(steps.Load()) != len(list) || len(list) == 0 {
		t.Errorf("%d steps were taken of %d, %v", steps.Load(), len(list), err)
	}
}

func pending(t *testing.T, url string) bool {
	t.Helper()
	p, err := postgres.Pending(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPending(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	if !pending(t, url) {
		t.Error("an empty database lacks nothing")
	}
	if n := count(t, url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); n != 0 {
		t.Errorf("the question made %d tables", n)
	}
	if done, err := postgres.Migrate(t.Context(), url); err != nil || done == 0 {
		t.Fatalf("%d steps, %v", done, err)
	}
	if pending(t, with(url, "default_transaction_read_only", "on")) {
		t.Error("something is missing after the migration")
	}
	do(t, connect(t, url), "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)")
	if !pending(t, url) {
		t.Error("a missing step was not seen")
	}
	list, err := postgres.Migrations(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		if last := i == len(list)-1; m.Applied == last || m.Name == "" || m.At.IsZero() != last {
			t.Errorf("got %+v", m)
		}
	}
	if again, err := postgres.Migrate(t.Context(), pgtest.New(t)); err != nil || again != 0 {
		t.Errorf("a current schema was migrated: %d steps, %v", again, err)
	}
}

func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// made counts what a migration can leave behind in the schema.
const made = `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE 'goose%')
	+ (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)
	+ (SELECT count(*) FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typname NOT LIKE '%goose%')`

func TestMigrateDownAndUp(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	before := count(t, url, made)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if left := count(t, url, made); left != 0 {
		t.Errorf("%d things are left behind", left)
	}
	if _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if after := count(t, url, made); after != before {
		t.Errorf("%d things after the way down and up, %d before", after, before)
	}
}

func TestMigrateIntoAnotherSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	do(t, connect(t, url), "CREATE SCHEMA clinic", "CREATE SCHEMA elsewhere")
	for _, schema := range []string{"clinic", "elsewhere"} {
		url := with(url, "search_path", schema)
		if _, err := postgres.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if pending(t, url) {
			t.Errorf("something is missing in %s", schema)
		}
		pool := open(t, postgres.Options{URL: url})
		openProject(t, pool, "sul")
		push(t, pool, "sul", "5531999990001", "oi")
		if n := value[int](t, pool, "SELECT count(*)::integer FROM fila_mensagens"); n != 1 {
			t.Errorf("%d messages in %s", n, schema)
		}
	}
	if n := count(t, url, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"); n != 0 {
		t.Errorf("%d things in public", n)
	}
}
