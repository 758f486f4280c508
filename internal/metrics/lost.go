package metrics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

const (
	// lostPage is how many receipts one look takes.
	lostPage = 20000
	// lostBudget is how long one scrape goes on looking; the next one goes on from there.
	lostBudget = time.Second
)

var lostStatement = statement.Named("receipt_lost")

// lost counts what fila_lost shows without reading every receipt every time. A message whose turn has ended, or that was
// ignored, is never lost any more. So receipts are looked at once, in the order of their numbers, and of those that are passed
// only the ones that still wait, or are lost, are looked at again. The first look, of a process that has just started, begins
// at 0.
type lost struct {
	// passed is the number up to which receipts were looked at; open are those among them without a turn.
	passed int64
	open   map[int64]struct{}
}

func newLost() lost { return lost{open: map[int64]struct{}{}} }

// receiptRow is a row of receipt_lost.sql. The last row of a look has no project and says how far the look went.
type receiptRow struct {
	ID      int64
	Project *string
	Lost    bool
	Passed  bool
	Full    bool
}

// count returns how many messages are lost, by project.
func (l *lost) count(ctx context.Context, pool *postgres.Pool) (map[string]int, error) {
	for start := time.Now(); ; {
		rows, err := pool.Query(ctx, lostStatement, postgres.PlannedAnew, l.passed, slices.Collect(maps.Keys(l.open)), lostPage)
		if err != nil {
			return nil, fmt.Errorf("look for lost messages: %w", err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[receiptRow])
		if err != nil {
			return nil, fmt.Errorf("look for lost messages: %w", err)
		}
		before := l.passed
		counts, full := l.note(found)
		if !full || l.passed == before || time.Since(start) > lostBudget {
			return counts, nil
		}
	}
}

// note keeps what the next look must see again, and tells whether there was more than one look takes.
func (l *lost) note(found []receiptRow) (counts map[string]int, full bool) {
	counts = map[string]int{}
	clear(l.open)
	for _, r := range found {
		switch {
		case r.Project == nil:
			l.passed, full = max(l.passed, r.ID), r.Full
			continue
		case r.Lost:
			counts[*r.Project]++
		}
		if r.Passed {
			l.open[r.ID] = struct{}{}
		}
	}
	return counts, full
}
