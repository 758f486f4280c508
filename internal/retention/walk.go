package retention

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

var (
	projectsStatement      = statement.Named("retention_projects")
	turnsStatement         = statement.Named("retention_turns")
	receiptsStatement      = statement.Named("retention_receipts")
	erasedStatement        = statement.Named("retention_erased")
	conversationsStatement = statement.Named("retention_conversations")
)

func (f *Forgetter) projects(ctx context.Context) ([]string, error) {
	rows, err := f.o.Pool.Query(ctx, projectsStatement)
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// errElsewhere: another instance is making its round, which is as good as ours.
var errElsewhere = errors.New("another instance deletes old rows")

// walk is a way through the rows of a class in the order of their key. A page remembers where it ended; while another instance is
// at work its error is errElsewhere.
type walk interface {
	page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error)
}

// turnWalk goes through the turns of one project: the dead ones, or all others.
type turnWalk struct {
	project string
	dead    bool
	after   int64
}

func turnWalks(projects []string, dead bool) []walk {
	walks := make([]walk, len(projects))
	for i, project := range projects {
		walks[i] = &turnWalk{project: project, dead: dead}
	}
	return walks
}

func (w *turnWalk) page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error) {
	return look(pool.QueryRow(ctx, turnsStatement, w.project, w.dead, w.after, rows), &w.after)
}

type receiptWalk struct{ after int64 }

func (w *receiptWalk) page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error) {
	return look(pool.QueryRow(ctx, receiptsStatement, w.after, rows), &w.after)
}

type erasedWalk struct{}

func (erasedWalk) page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error) {
	return look(pool.QueryRow(ctx, erasedStatement, rows))
}

// conversationWalk begins anew behind its last page.
type conversationWalk struct{ project, phone string }

func (w *conversationWalk) page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error) {
	gone, more, err = look(pool.QueryRow(ctx, conversationsStatement, w.project, w.phone, rows), &w.project, &w.phone)
	if err == nil && !more {
		*w = conversationWalk{}
	}
	return gone, more, err
}

// look reads what a page answers: how many rows went, null while another instance is at work; where the page ended; whether more
// may be old.
func look(answer pgx.Row, ended ...any) (gone int64, more bool, err error) {
	var rows *int64
	if err := answer.Scan(append(append([]any{&rows}, ended...), &more)...); err != nil {
		return 0, false, err
	}
	if rows == nil {
		return 0, false, errElsewhere
	}
	return *rows, more, nil
}
