// Package pgtest gives every test a Postgres database of its own.
//
// The server is the one at FILA_TEST_DATABASE_URL: yours, or the one that the
// program in package server starts for a whole `go test ./...`, in a container if
// it can. Without it, each test program starts a private server from the machine's
// own binaries, which is gone when the program is.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"fila/internal/postgres/cluster"
)

const (
	// URLVariable names the server that tests run on; its user must be allowed to
	// create databases.
	URLVariable = "FILA_TEST_DATABASE_URL"
	// TemporaryVariable, when set, says that nobody looks at that server after the
	// tests: the databases of failed tests are not kept.
	TemporaryVariable = "FILA_TEST_DATABASE_TEMPORARY"
)

// startLimit bounds the start of a server, the making of a database and the like.
const startLimit = 2 * time.Minute

// New returns the URL of a migrated database that only this test uses. It is
// dropped when the test has passed; that of a failed test is kept, and its URL
// logged, where someone may look at it.
func New(t testing.TB) string {
	t.Helper()
	server := serverURL(t)
	template, err := migrated()
	if err != nil {
		t.Fatalf("migrate the template of the test databases: %v", err)
	}
	return create(t, server, template)
}

// Empty returns the URL of a database without a schema, otherwise like New's.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, serverURL(t), "template0")
}

// Server returns a server that only this test uses, which it may kill, with safe
// commits and with these settings over the usual ones.
func Server(t testing.TB, settings map[string]string) *cluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	c, err := startCluster(ctx, cluster.Options{
		Durable: true, Settings: settings, Log: zerolog.New(zerolog.NewTestWriter(t)),
	})
	if err != nil {
		t.Fatalf("start a Postgres for this test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("stop the Postgres of this test: %v", err)
		}
	})
	return c
}

// Local starts a server for many tests from the machine's own binaries. It is
// fast, and its data is gone when it stops or this process dies.
func Local(ctx context.Context) (*cluster.Cluster, error) {
	return startCluster(ctx, cluster.Options{Log: zerolog.Nop(), Settings: map[string]string{
		"max_connections": "300", // many test programs at once, each with its pools
		"shared_buffers":  "128MB",
	}})
}

func startCluster(ctx context.Context, options cluster.Options) (*cluster.Cluster, error) {
	folder, err := os.MkdirTemp("", "fila-test-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a test server: %w", err)
	}
	// Root's server runs as another user, who must get in.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("open the folder of a test server: %w", err), os.RemoveAll(folder))
	}
	options.Folder, options.Temporary = folder, true
	return cluster.Start(ctx, options)
}

// shared is the server of this test program. Nothing stops it: it ends with the
// program, whose end nobody announces.
var shared = sync.OnceValues(func() (string, error) {
	if named := os.Getenv(URLVariable); named != "" {
		return named, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	c, err := Local(ctx)
	if err != nil {
		return "", err
	}
	return c.URL("postgres"), nil
})

func serverURL(t testing.TB) string {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatalf("no Postgres to test on: %v; `make test` can also use Docker, and %s names a server of yours", err, URLVariable)
	}
	return server
}

// create makes a database from a template, until the end of the test.
func create(t testing.TB, server, template string) string {
	t.Helper()
	name := "fila_test_" + strings.ToLower(rand.Text()[:16])
	address, err := withDatabase(server, name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	if err := onServer(ctx, server, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, createStatement(conn, name, template))
		return err
	}); err != nil {
		t.Fatalf("create the test's database: %v", err)
	}
	t.Cleanup(func() { discard(t, server, name, address) })
	return address
}

// discard drops a test's database, unless it may tell someone why the test failed.
func discard(t testing.TB, server, name, address string) {
	t.Helper()
	if t.Failed() && os.Getenv(URLVariable) != "" && os.Getenv(TemporaryVariable) == "" {
		t.Logf("the test's database is kept: %s", address)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := onServer(ctx, server, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "drop database "+pgx.Identifier{name}.Sanitize()+" with (force)")
		return err
	}); err != nil {
		t.Errorf("drop the test's database: %v", err)
	}
}

// createStatement copies the template's files where the server can: with fsync
// off that takes half the time of copying through its log.
func createStatement(conn *pgx.Conn, name, template string) string {
	statement := "create database " + pgx.Identifier{name}.Sanitize() + " template " + pgx.Identifier{template}.Sanitize()
	if major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), "."); major >= "15" {
		statement += " strategy file_copy"
	}
	return statement
}

// onServer calls f with a connection of its own, outside of any pool: databases
// are made and dropped where nothing else goes on.
func onServer(ctx context.Context, server string, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(conn)
}

// withDatabase names another database of the same server.
func withDatabase(server, name string) (string, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
		// The parse error would print the URL with its password.
		return "", fmt.Errorf("%s is no URL: write postgres://user:password@host:port/postgres", URLVariable)
	}
	address.Path = "/" + name
	return address.String(), nil
}
