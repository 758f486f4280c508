package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"fila/internal/postgres"
)

// standing is what stands between us and the server.
type standing string

const (
	nobody         standing = "none between us and the server"
	perSession     standing = "there is one, and a session keeps its server connection"
	perTransaction standing = "there is one in transaction mode, which fila can work with, since it names no prepared statement; what a role needs is set with ALTER ROLE, not in the URL"
	perStatement   standing = "there is one in statement mode, in which nothing can be decided in one transaction: set pool_mode = transaction for this database"
)

// poolerLooks is how often we look whether a session keeps its server connection: others may take it first.
const poolerLooks = 3

func (d database) pooler(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
	mode, err := d.standing(ctx)
	d.pool.Reset() // a pooler with few connections would have none for the look at the schema
	switch {
	case err != nil:
		d.found.add(failing, "pooler", "%s", joined(err))
	case mode == perStatement:
		d.found.add(failing, "pooler", "%s", mode)
	default:
		d.found.add(fine, "pooler", "%s", mode)
	}
}

// standing asks two sessions at once which server process answers them. A pooler makes up the process id that it tells a client;
// in transaction mode it lends an idle session's server connection to the next transaction.
func (d database) standing(ctx context.Context) (standing, error) {
	idle, err := d.pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer idle.Release()
	busy, err := d.pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer busy.Release()
	before, err := value[uint32](ctx, idle, "connection_backend")
	if err != nil || before == idle.Conn().PgConn().PID() {
		return nobody, err
	}
	for range poolerLooks {
		mode, err := lends(ctx, idle, busy, before)
		if err != nil || mode != perSession {
			return mode, err
		}
	}
	return perSession, nil
}

// lends tells whether the busy session's transaction got what answered the idle one before, or the idle one another meanwhile.
func lends(ctx context.Context, idle, busy *pgxpool.Conn, before uint32) (mode standing, err error) {
	tx, err := busy.Begin(ctx)
	// pgbouncer refuses a transaction in statement mode with a protocol violation.
	if postgres.Code(err) == "08P01" {
		return perStatement, nil
	}
	if err != nil {
		return "", fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	lent, err := value[uint32](ctx, tx, "connection_backend")
	if err != nil || lent == before {
		return perTransaction, err
	}
	now, err := value[uint32](ctx, idle, "connection_backend")
	if err != nil || now != before {
		return perTransaction, err
	}
	return perSession, nil
}
