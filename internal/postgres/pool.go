// Package postgres is the way to the database: pools, classes of errors, migrations.
package postgres

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	statement "fila/sql"
)

// Pool is a pool of connections to one database.
type Pool = pgxpool.Pool

// Options describe one pool. Arriving and running have a pool each, so that neither can starve the other.
type Options struct {
	// URL is the database's address; several hosts and target_session_attrs=read-write are understood.
	URL string
	// MaxConns is how many connections the pool may hold at once.
	MaxConns int32
	// Name appears as application_name in pg_stat_activity, unless the URL gives one.
	Name string
}

// Committers is how many commits of one kind this process has in flight at once: one where there are two processors, up to four where there
// are eight. More make the batches smaller, and on two processors that cost a quarter of the server's work.
func Committers() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), 4) }

// pingAfter is how long a connection may have been idle and still be trusted.
const pingAfter = 15 * time.Second

// Open makes a pool without connecting: the database may be away when the service starts.
//
// Statements are prepared unless a pooler is in between; a mode named in the URL wins.
func Open(ctx context.Context, o Options) (*Pool, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// The parser's own error may repeat the password.
		return nil, fmt.Errorf("database URL: not understood; it looks like postgres://user:password@host:5432/database")
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" && o.Name != "" {
		config.ConnConfig.RuntimeParams["application_name"] = o.Name
	}
	config.MaxConns = o.MaxConns
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = time.Minute
	// Looked at before use only after a real pause: the sweep comes once a second, and must stay the only statement of an
	// idle service.
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > pingAfter }
	config.ConnConfig.OnPgError = closeOnDemotion
	config.ConnConfig.OnNotice = noteDoubt
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement.Named("connection_open"), pgx.QueryExecModeSimpleProtocol)
		return err
	}
	(&preparing{}).configure(config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return pool, nil
}

// closeOnDemotion drops a connection to a server that stopped being the primary (25006), so that the next one is made to
// whichever host of the URL is writable; fatal errors close the connection anyway.
func closeOnDemotion(_ *pgconn.PgConn, e *pgconn.PgError) bool {
	return e.Code != "25006" && e.Severity != "FATAL"
}
