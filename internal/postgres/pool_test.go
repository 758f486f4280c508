package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

func open(t *testing.T, o postgres.Options) *postgres.Pool {
	t.Helper()
	if o.MaxConns == 0 {
		o.MaxConns = 2
	}
	pool, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func value[T any](t *testing.T, pool *postgres.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestOpenRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u:secret@host:port/db", "host=localhost password=secret port=x", "mysql://u:secret@host/db"} {
		if _, err := postgres.Open(t.Context(), postgres.Options{URL: url, MaxConns: 1}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestOpenNamesItsSessions(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	for address, want := range map[string]string{url: "fila arrive", with(url, "application_name", "mine"): "mine"} {
		pool := open(t, postgres.Options{URL: address, Name: "fila arrive"})
		if got := value[string](t, pool, "SHOW application_name"); got != want {
			t.Errorf("application_name is %q, want %q", got, want)
		}
	}
}

func TestOpenTakesTheSecondHostWhenTheFirstIsDead(t *testing.T) {
	t.Parallel()
	c, err := pgx.ParseConfig(pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	pool := open(t, postgres.Options{URL: fmt.Sprintf(
		"host=127.0.0.1,%s port=1,%d user=%s password='%s' dbname=%s target_session_attrs=read-write", c.Host, c.Port, c.User, c.Password, c.Database)})
	if got := value[string](t, pool, "SELECT current_database()"); got != c.Database {
		t.Errorf("connected to %s", got)
	}
}

// TestReadOnlyServer is a primary that was demoted while the service was connected to it.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	pool := open(t, postgres.Options{URL: url, MaxConns: 1})
	before := value[int](t, pool, "SELECT pg_backend_pid()")
	if _, err := pool.Exec(t.Context(), "SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	const write = "INSERT INTO wakeups (project, phone) VALUES ('clinic', '1')"
	_, err := pool.Exec(t.Context(), write)
	if postgres.Classify(err) != postgres.Away || postgres.Code(err) != "25006" {
		t.Errorf("class %d of %v", postgres.Classify(err), err)
	}
	// The next connection may lead to the new primary, and here does.
	if _, err := pool.Exec(t.Context(), write); err != nil {
		t.Errorf("the pool kept the connection to a server that cannot write: %v", err)
	}
	if after := value[int](t, pool, "SELECT pg_backend_pid()"); after == before {
		t.Error("the pool kept the session")
	}
}

func TestNoWritableHost(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	conn := connect(t, url)
	do(t, conn, "ALTER DATABASE "+pgx.Identifier{conn.Config().Database}.Sanitize()+" SET default_transaction_read_only = on")
	pool := open(t, postgres.Options{URL: with(url, "target_session_attrs", "read-write")})
	_, err := pool.Exec(t.Context(), "SELECT")
	if postgres.Classify(err) != postgres.Away {
		t.Errorf("class %d of %v", postgres.Classify(err), err)
	}
}

// with adds a parameter to a database URL.
func with(url, name, value string) string {
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + name + "=" + value
}
