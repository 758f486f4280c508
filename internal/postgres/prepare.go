package postgres

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	statement "fila/sql"
)

// preparing decides whether a pool's statements are prepared, which saves both sides a tenth of their work. They must not be behind a
// pooler in transaction mode, where a named statement is sought on another server connection than the one that knows it. A pooler is told
// by the process that serves us: it is not the one that answered when the connection was made. Until that is known nothing is prepared.
type preparing struct{ direct atomic.Bool }

// PlannedAnew, in front of a statement's arguments, has it planned for these: a plan that serves all arguments would read a whole table where a
// null does not narrow, or where one project has few rows among the many of others.
const PlannedAnew = pgx.QueryExecModeCacheDescribe

// unpreparedKey marks a connection that was made before it was known that statements may be prepared.
const unpreparedKey = "fila: unprepared"

// configure leaves a mode that the URL names as it is. Unprepared statements have their parameter types looked up once and remembered.
func (p *preparing) configure(config *pgxpool.Config) {
	if config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if !p.direct.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		}
		return nil
	}
	opened := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := opened(ctx, conn); err != nil {
			return err
		}
		return p.look(ctx, conn)
	}
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		return conn.PgConn().CustomData()[unpreparedKey] == nil || !p.direct.Load(), nil
	}
}

func (p *preparing) look(ctx context.Context, conn *pgx.Conn) error {
	var backend uint32
	// Not itself prepared: it is what tells whether that may be.
	if err := conn.QueryRow(ctx, statement.Named("connection_backend"), pgx.QueryExecModeExec).Scan(&backend); err != nil {
		return err
	}
	direct := backend == conn.PgConn().PID()
	prepares := conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	p.direct.Store(direct)
	if prepares && !direct {
		// The next connection is made for it.
		return fmt.Errorf("the database is behind a pooler now")
	}
	if !prepares {
		conn.PgConn().CustomData()[unpreparedKey] = true
	}
	return nil
}
