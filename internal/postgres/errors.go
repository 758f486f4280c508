package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Class is what a caller can do about an error of the database.
type Class int

const (
	// Broken: a mistake of ours, or of the schema. Nobody can repeat it into success.
	Broken Class = iota
	// Again: the transaction lost a race and left nothing behind; it may be run again at once.
	Again
	// Away: the database cannot be reached, cannot write, or did not answer in time; later it may.
	Away
	// Invalid: the values were refused (a character, a number, a length); they never will be taken.
	Invalid
	// Refused: one of our functions said no, in words meant for the caller.
	Refused
)

// Classify tells the class of an error of the database.
func Classify(err error) Class {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return classifyTransport(err)
	}
	switch {
	case e.Code == "40001", e.Code == "40P01", e.Code == "55P03":
		return Again
	// A statement that was prepared before a migration, or that the server forgot; the driver prepares it anew.
	case e.Code == "26000", e.Code == "0A000" && e.Routine == "RevalidateCachedQuery":
		return Again
	case strings.HasPrefix(e.Code, "FI"):
		return Refused
	// Connection and resource trouble, a server that starts, stops or only reads, a statement or a session that took too long.
	case has(e.Code, "08", "53", "57", "58", "25006", "25P03", "25P04", "XX", "3D", "28"):
		return Away
	case has(e.Code, "22", "23", "54"):
		return Invalid
	// The schema is not there yet: someone will migrate.
	case has(e.Code, "42P01", "42883", "3F000"):
		return Away
	}
	return Broken
}

// Lost tells whether the connection broke, as against a database that answered. What was sent may have been carried out,
// unless nothing of it left: unsent says that.
func Lost(err error) (lost, unsent bool) {
	code := Code(err)
	if code != "" {
		return has(code, "57P0", "08"), false
	}
	if classifyTransport(err) != Away || errors.Is(err, ErrNotDurable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false, false
	}
	return true, pgconn.SafeToRetry(err)
}

func classifyTransport(err error) Class {
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, pgx.ErrTooManyRows):
		return Broken
	case errors.Is(err, ErrNotDurable):
		return Away
	case errors.As(err, &network), errors.As(err, &connect), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		pgconn.Timeout(err), pgconn.SafeToRetry(err):
		return Away
	}
	// What is left of a connection that broke in the middle: EOF, reset, closed.
	if strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "closed") {
		return Away
	}
	return Broken
}

func has(code string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(code, p) {
			return true
		}
	}
	return false
}

// Code is the SQLSTATE of an error, or "".
func Code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Refusal is the sentence of an error of class Refused: written by our functions, without personal data.
func Refusal(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) && strings.HasPrefix(e.Code, "FI") {
		return e.Message
	}
	return ""
}

// Safe describes an error for a log line. A database's own message may quote the row that it refused, with a patient's text in
// it, so only the code and the names of things get through.
func Safe(err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return scrubbed(err)
	}
	said := "SQLSTATE " + e.Code
	for _, named := range []struct{ what, name string }{{"constraint", e.ConstraintName}, {"table", e.TableName}, {"column", e.ColumnName}, {"routine", e.Routine}} {
		if named.name != "" {
			said += ", " + named.what + " " + named.name
		}
	}
	if strings.HasPrefix(e.Code, "FI") {
		said += ": " + e.Message
	}
	return said
}

// scrubbed keeps what is known to hold no values: transport errors and our own sentinels.
func scrubbed(err error) string {
	var connect *pgconn.ConnectError
	var network *net.OpError
	var scan pgx.ScanArgError
	switch {
	case errors.Is(err, ErrNotDurable):
		return ErrNotDurable.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer of the database in time"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &network):
		return "database connection: " + network.Op + ": " + network.Err.Error()
	case errors.As(err, &connect):
		return "database connection failed"
	case Classify(err) == Away:
		return "database connection lost"
	// The driver quotes the value that it could not translate.
	case errors.As(err, &scan):
		return fmt.Sprintf("column %d of an answer of the database is not of the expected type", scan.ColumnIndex)
	case strings.Contains(err.Error(), "unable to encode"), strings.Contains(err.Error(), "failed to encode"):
		return "a value is not of the type that the database expects"
	}
	return err.Error()
}
