package retention

import (
	"context"
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

// walk is a way through the rows of a class in the order of their key. A page remembers where it ended.
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
	return gone, more, pool.QueryRow(ctx, turnsStatement, w.project, w.dead, w.after, rows).Scan(&gone, &w.after, &more)
}

type receiptWalk struct{ after int64 }

func (w *receiptWalk) page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error) {
	return gone, more, pool.QueryRow(ctx, receiptsStatement, w.after, rows).Scan(&gone, &w.after, &more)
}

type erasedWalk struct{}

func (erasedWalk) page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error) {
	return gone, more, pool.QueryRow(ctx, erasedStatement, rows).Scan(&gone, &more)
}

// conversationWalk begins anew behind its last page.
type conversationWalk struct{ project, phone string }

func (w *conversationWalk) page(ctx context.Context, pool *postgres.Pool, rows int) (gone int64, more bool, err error) {
	if err = pool.QueryRow(ctx, conversationsStatement, w.project, w.phone, rows).Scan(&gone, &w.project, &w.phone, &more); err == nil && !more {
		*w = conversationWalk{}
	}
	return gone, more, err
}
