// Package ledger reads what happened: turns, conversations, and a row a project for the handover. It changes nothing. Its types
// are the JSON documents that the API and the command line answer with.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

// ErrNotFound: no such turn or project, or it is another project's.
var ErrNotFound = errors.New("not found")

// ConversationTurns is how many turns a conversation shows: the last ones.
const ConversationTurns = 20

var (
	turnStatement         = statement.Named("turn_list")
	conversationStatement = statement.Named("conversation_show")
	overviewStatement     = statement.Named("overview_list")
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Ledger reads from one database.
type Ledger struct{ db Querier }

// New makes a ledger that reads by db.
func New(db Querier) Ledger { return Ledger{db: db} }

// Filter narrows a list of turns; zero fields do not.
type Filter struct {
	Project string
	// Phone may have any of the conversation's forms.
	Phone string
	State string
	// Before keeps only turns older than this one.
	Before int64
	// Limit is how many turns at most; 50 where it is 0.
	Limit int
}

// DefaultLimit is how many turns a list has that asks for no number.
const DefaultLimit = 50

// Turns lists turns, newest first.
func (l Ledger) Turns(ctx context.Context, f Filter) ([]Turn, error) {
	return collect[Turn](ctx, l.db, "list turns", turnStatement,
		orNull(f.Project), orNull(f.Phone), orNull(f.State), nil, orNull(f.Before), cmp.Or(f.Limit, DefaultLimit))
}

// Page lists turns, newest first, and says whether there are older ones.
func (l Ledger) Page(ctx context.Context, f Filter) (Page, error) {
	limit := cmp.Or(f.Limit, DefaultLimit)
	f.Limit = limit + 1
	turns, err := l.Turns(ctx, f)
	if err != nil || len(turns) <= limit {
		return Page{Turns: turns}, err
	}
	return Page{Turns: turns[:limit], Before: &turns[limit-1].ID}, nil
}

// Turn returns one turn of a project, or of any when project is empty; ErrNotFound when it has none such.
func (l Ledger) Turn(ctx context.Context, project string, id int64) (Turn, error) {
	found, err := collect[Turn](ctx, l.db, "read turn", turnStatement, orNull(project), nil, nil, id, nil, 1)
	return only(found, err)
}

// Conversation returns what is known of a phone in any of its forms, with its last turns; empty for one that never wrote.
// ErrNotFound when the project is unknown.
func (l Ledger) Conversation(ctx context.Context, project, phone string) (Conversation, error) {
	found, err := collect[Conversation](ctx, l.db, "read conversation", conversationStatement, project, phone)
	c, err := only(found, err)
	if err != nil {
		return c, err
	}
	c.Turns, err = l.Turns(ctx, Filter{Project: project, Phone: phone, Limit: ConversationTurns})
	return c, err
}

// Overview returns a row for every project, by name.
func (l Ledger) Overview(ctx context.Context) ([]Overview, error) {
	return collect[Overview](ctx, l.db, "read overview", overviewStatement)
}

// collect decodes the JSON documents of a statement's only column; never nil without an error.
func collect[T any](ctx context.Context, db Querier, what, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, append([]any{postgres.PlannedAnew}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	found, err := pgx.AppendRows([]T{}, rows, pgx.RowTo[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return found, nil
}

func only[T any](found []T, err error) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, err
	case len(found) == 0:
		return none, ErrNotFound
	}
	return found[0], nil
}

// orNull makes a zero value a null, which narrows nothing.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
