package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"fila/config"
	"fila/internal/postgres"
	"fila/internal/postgres/cluster"
	statement "fila/sql"
)

// privateFolder is where `fila serve` keeps a Postgres of its own.
const privateFolder = ".fila/postgres"

var errNoDatabase = errors.New(`no database is named and no private one runs here: start "fila serve" in this folder, or set FILA_DATABASE_URL`)

// databaseURL is FILA_DATABASE_URL, else the configuration's, else that of the private Postgres that a service runs. The
// configuration is not looked at unless it is needed: whoever has a URL may read without the clinics' secrets.
func (c *cli) databaseURL(ctx context.Context) (string, error) {
	if url := c.variable("FILA_DATABASE_URL"); url != "" {
		return url, nil
	}
	url, err := c.configuredURL()
	if url != "" || err != nil {
		return url, err
	}
	if url, ok := cluster.Running(ctx, privateFolder); ok {
		return url, nil
	}
	return "", errNoDatabase
}

// configuredURL is empty where the file says nothing, or where there is none and nobody named one.
func (c *cli) configuredURL() (string, error) {
	settings, err := config.Load(c.configPath(), c.env)
	switch {
	case err == nil:
		return settings.DatabaseURL.Reveal(), nil
	case errors.Is(err, fs.ErrNotExist) && c.configPath() == defaultConfig:
		return "", nil
	}
	return "", err
}

// connected gives f a pool that is closed behind it.
func (c *cli) connected(cmd *cobra.Command, f func(context.Context, *postgres.Pool) error) error {
	url, err := c.databaseURL(cmd.Context())
	if err != nil {
		return err
	}
	pool, err := postgres.Open(cmd.Context(), postgres.Options{URL: url, MaxConns: 4, Name: cmd.CommandPath()})
	if err != nil {
		return err
	}
	defer pool.Close()
	return f(cmd.Context(), pool)
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// value runs the statement in sql/name.sql, whose answer is one value.
func value[T any](ctx context.Context, db querier, name string, args ...any) (T, error) {
	var answer T
	err := db.QueryRow(ctx, statement.Named(name), args...).Scan(&answer)
	return answer, err
}
