package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotDurable: the server committed, and somebody cancelled its wait for the synchronous standby. The server calls that a
// success with a warning; whoever promises durability must not.
var ErrNotDurable = errors.New("committed here, but its synchronous standby has not confirmed it")

// doubtKey marks a connection whose last commits were warned about.
const doubtKey = "fila: commit not confirmed"

// noteDoubt looks for that warning. Its text is in the server's language; of warnings without a code of their own, our
// statements cause no other.
func noteDoubt(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && n.Code == "01000" {
		c.CustomData()[doubtKey] = true
	}
}

// Durable returns ErrNotDurable if a commit on this connection was warned about since it was last asked.
func Durable(conn *pgxpool.Conn) error {
	data := conn.Conn().PgConn().CustomData()
	if data[doubtKey] == nil {
		return nil
	}
	delete(data, doubtKey)
	return ErrNotDurable
}
