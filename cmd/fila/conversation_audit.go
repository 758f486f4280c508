package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

// lastDeeds is how many actions a conversation shows.
const lastDeeds = 10

// deed is one action on a conversation, as the audit has it.
type deed struct {
	At     time.Time
	Action string
	Actor  string
	Turn   *string
	Reason *string
}

// deeds are the last actions on a conversation, newest first.
func deeds(ctx context.Context, pool *postgres.Pool, project, key string) ([]deed, error) {
	rows, err := pool.Query(ctx, statement.Named("audit_list"), project, key, lastDeeds)
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	done, err := pgx.CollectRows(rows, pgx.RowToStructByPos[deed])
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	return done, nil
}

func deedTable(p palette, done []deed, now time.Time) *table {
	t := newTable(p, right("AGE"), left("ACTION"), left("BY"), right("TURN"), left("REASON"))
	for _, d := range done {
		t.row(age(now.Sub(d.At)), d.Action, shortened(d.Actor), orDash(d.Turn), shortened(orDash(d.Reason)))
	}
	return t
}
