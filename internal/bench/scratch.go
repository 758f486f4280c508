package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
)

// dropFor bounds the removal of a run's database.
const dropFor = 30 * time.Second

// scratch makes a database on the server at the URL or, where the role may not, a schema in that database.
func scratch(ctx context.Context, server string) (*database, error) {
	d := &database{server: server, name: "fila_bench_" + strings.ToLower(rand.Text()[:10])}
	address, err := url.Parse(server)
	if err != nil || address.Scheme == "" {
		return nil, errors.New("database URL: not understood; it looks like postgres://user:password@host:5432/database")
	}
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("connect for the benchmark: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := d.create(ctx, conn, address); err != nil {
		return nil, fmt.Errorf("make a database or a schema for the benchmark: %w", err)
	}
	d.url = address.String()
	if d.conn, err = pgx.Connect(ctx, d.url); err != nil {
		d.drop(ctx)
		return nil, fmt.Errorf("connect to the benchmark's database: %w", err)
	}
	return d, nil
}

// create makes what only this run uses, and has the address lead there.
func (d *database) create(ctx context.Context, conn *pgx.Conn, address *url.URL) error {
	name := pgx.Identifier{d.name}.Sanitize()
	_, err := conn.Exec(ctx, "CREATE DATABASE "+name)
	if postgres.Code(err) == "42501" {
		d.schema = true
		query := address.Query()
		query.Set("search_path", d.name)
		address.RawQuery = query.Encode()
		_, err = conn.Exec(ctx, "CREATE SCHEMA "+name)
		return err
	}
	if err == nil {
		address.Path = "/" + d.name
		// Only a superuser may; without it the number of batches stays unknown.
		_, _ = conn.Exec(ctx, "ALTER DATABASE "+name+" SET track_functions = 'pl'")
	}
	return err
}

func (d *database) drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropFor)
	defer cancel()
	if d.conn != nil {
		_ = d.conn.Close(ctx)
	}
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	name := pgx.Identifier{d.name}.Sanitize()
	if d.schema {
		_, _ = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+name+" CASCADE")
		return
	}
	_, _ = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}
