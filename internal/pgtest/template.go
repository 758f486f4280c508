package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	"fila/migrations"
)

// migrated is the name of the template with today's schema on this program's server.
var migrated = sync.OnceValues(func() (string, error) {
	server, err := shared()
	if err != nil {
		return "", err
	}
	key, err := fingerprint(migrations.FS)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	t := template{server: server, name: "fila_template_" + key, migrate: func(ctx context.Context, url string) error {
		_, err := postgres.Migrate(ctx, url)
		return err
	}}
	return t.name, t.ensure(ctx)
})

// fingerprint tells one schema from another by the migrations' names and texts.
func fingerprint(files fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the migrations: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// template is a database that the tests' own are copied from.
type template struct {
	server  string
	name    string
	migrate func(ctx context.Context, url string) error
}

// templateLock keeps test programs apart that want the template at one time.
const templateLock = 0x66696c61

// ensure makes the template unless it is there. Only a finished one is marked as a
// template, so that one whose maker died is made anew.
func (t template) ensure(ctx context.Context) error {
	return onServer(ctx, t.server, func(conn *pgx.Conn) error {
		// The lock goes with the connection.
		if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", templateLock); err != nil {
			return fmt.Errorf("lock the template: %w", err)
		}
		var finished bool
		err := conn.QueryRow(ctx, "select datistemplate from pg_database where datname = $1", t.name).Scan(&finished)
		if finished || err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return t.build(ctx, conn)
	})
}

func (t template) build(ctx context.Context, conn *pgx.Conn) error {
	address, err := withDatabase(t.server, t.name)
	if err != nil {
		return err
	}
	quoted := pgx.Identifier{t.name}.Sanitize()
	for _, statement := range []string{
		"drop database if exists " + quoted + " with (force)",
		createStatement(conn, t.name, "template0"),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create the template: %w", err)
		}
	}
	if err := t.migrate(ctx, address); err != nil {
		return err
	}
	// A template with a session in it cannot be copied: nobody may come in any more.
	if _, err := conn.Exec(ctx, "alter database "+quoted+" with is_template true allow_connections false"); err != nil {
		return fmt.Errorf("finish the template: %w", err)
	}
	return nil
}
