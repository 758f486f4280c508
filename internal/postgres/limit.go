package postgres

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	statement "fila/sql"
)

var limitStatement = statement.Named("transaction_limit")

// Limit puts the server's own limits in front of what is queued next: how long a statement may run, and how long it may wait
// for a lock. They belong below the caller's own: what it reports as not done is then not done a moment later.
func Limit(round *pgx.Batch, run, lock time.Duration) {
	round.Queue(limitStatement, milliseconds(run), milliseconds(lock))
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
