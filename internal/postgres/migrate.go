package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"fila/migrations"
	statement "fila/sql"
)

var listStatement = statement.Named("migration_list")

// Migration is one step of the schema's history.
type Migration struct {
	Version int64     `json:"version"`
	Name    string    `json:"name"`
	Applied bool      `json:"applied"`
	At      time.Time `json:"at,omitzero"`
}

// Migrate brings the schema up to date and says how many steps that took. Several processes may race: one applies, the others
// wait for it. The lock is a row with a lease, so that it works through a pooler too.
func Migrate(ctx context.Context, url string) (int, error) {
	provider, db, err := open(url)
	if err != nil {
		return 0, err
	}
	defer closeQuietly(db)
	done, err := provider.Up(ctx)
	if err != nil {
		return len(done), fmt.Errorf("migrate: %w", err)
	}
	return len(done), nil
}

// Pending tells whether the schema lacks steps that this program knows. It changes nothing.
func Pending(ctx context.Context, url string) (bool, error) {
	list, err := Migrations(ctx, url)
	if err != nil {
		return false, err
	}
	for _, m := range list {
		if !m.Applied {
			return true, nil
		}
	}
	return false, nil
}

// Migrations lists the schema's history and what of it is applied. It only reads, so that a standby can be asked too.
func Migrations(ctx context.Context, url string) ([]Migration, error) {
	provider, db, err := open(url)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(db)
	applied, err := appliedAt(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	sources := provider.ListSources()
	list := make([]Migration, len(sources))
	for i, s := range sources {
		at, done := applied[s.Version]
		list[i] = Migration{Version: s.Version, Name: s.Path, Applied: done, At: at}
	}
	return list, nil
}

// appliedAt reads the history itself: goose's own status first takes the lock, and makes its tables where they are missing.
func appliedAt(ctx context.Context, db *sql.DB) (map[int64]time.Time, error) {
	applied := map[int64]time.Time{}
	rows, err := db.QueryContext(ctx, listStatement)
	if err != nil && Code(err) == "42P01" {
		return applied, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var version int64
		var at time.Time
		if err := rows.Scan(&version, &at); err != nil {
			return nil, err
		}
		applied[version] = at
	}
	return applied, rows.Err()
}

func open(url string) (*goose.Provider, *sql.DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("database URL: not understood; it looks like postgres://user:password@host:5432/database")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	db := stdlib.OpenDB(*config)
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableLeaseDuration(30*time.Second),
		// For a minute: longer than the lease of one that died while it migrated.
		lock.WithTableLockTimeout(250*time.Millisecond, 240),
	)
	if err != nil {
		return nil, nil, fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithLocker(locker), goose.WithVerbose(false))
	if err != nil {
		return nil, nil, fmt.Errorf("migrations: %w", err)
	}
	return provider, db, nil
}

// closeQuietly: a pool of database/sql that was only read from has nothing left to lose.
func closeQuietly(db *sql.DB) { _ = db.Close() }
