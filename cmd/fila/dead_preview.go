package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/ledger"
	"fila/internal/postgres"
	statement "fila/sql"
)

// preview is what a redrive would do with one turn.
type preview struct {
	ID      string `json:"id"`
	Project string `json:"project"`
	Phone   string `json:"phone"`
	// Would is what would happen, or why it would be refused.
	Would   string `json:"would"`
	Refused bool   `json:"refused"`
	// AgeSeconds is since the patient's first message, DeadSeconds since the turn died.
	AgeSeconds  *float64 `json:"age_seconds"`
	DeadSeconds *float64 `json:"dead_seconds"`
	Messages    int      `json:"messages"`

	turn int64
}

// previewRedrive does it all, by the same rules, and takes it back: each conversation in a transaction of its own, since its
// messages wait meanwhile.
func (c *cli) previewRedrive(ctx context.Context, pool *postgres.Pool, v verdict) error {
	ids, err := v.chosen(ctx, pool)
	if err != nil {
		return err
	}
	now, err := value[time.Time](ctx, pool, "clock")
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	all := make([]preview, len(ids))
	together := map[string][]*preview{}
	for i, id := range ids {
		if all[i], err = previewOf(ctx, pool, id, now); err != nil {
			return err
		}
		// Turns that are not known have no conversation.
		with := all[i].Project + ":" + all[i].Phone
		together[with] = append(together[with], &all[i])
	}
	for _, turns := range together {
		if err := previewTogether(ctx, pool, turns, v.force); err != nil {
			return err
		}
	}
	return c.print(map[string][]preview{"would_redrive": all}, func(w io.Writer) {
		t := newTable(c.palette(), right("ID"), left("PROJECT"), left("PHONE"), right("AGE"), right("DEAD FOR"), right("MESSAGES"), left("WOULD"))
		for _, p := range all {
			t.row(p.ID, p.Project, p.Phone, seconds(p.AgeSeconds), seconds(p.DeadSeconds), fmt.Sprint(p.Messages), p.Would)
		}
		t.write(w, "No dead turns.")
		fmt.Fprintln(w, "Nothing was changed.")
	})
}

// previewOf is what is known of a turn.
func previewOf(ctx context.Context, db ledger.Querier, id int64, now time.Time) (preview, error) {
	p := preview{ID: fmt.Sprint(id), Project: "-", Phone: "-", turn: id}
	turn, err := ledger.New(db).Turn(ctx, "", id)
	if errors.Is(err, ledger.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Project, p.Phone, p.Messages = turn.Project, turn.Phone, len(turn.Messages)
	p.AgeSeconds, p.DeadSeconds = since(&turn.FirstAt, now), since(turn.FinishedAt, now)
	p.Would = course(turn)
	return p, nil
}

// previewTogether redrives the turns of one conversation in their order, and takes it back.
func previewTogether(ctx context.Context, pool *postgres.Pool, turns []*preview, force bool) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for _, p := range turns {
		// A refusal ends its transaction: so each has one within ours.
		err := pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
			if _, err := nested.Exec(ctx, statement.Named("action_redrive"), nil, p.turn, "preview", "preview", force); err != nil {
				return err
			}
			mode, err := value[string](ctx, nested, "conversation_mode", p.Project, p.Phone)
			if mode == "suspended" {
				p.Would = "wait until the conversation is resumed, then " + p.Would
			}
			return err
		})
		if refusal := postgres.Refusal(err); refusal != "" {
			p.Would, p.Refused, err = "be refused: "+refusal, true, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// course is how a redriven turn goes on.
func course(t ledger.Turn) string {
	sent, parts := 0, 0
	for _, part := range t.Parts {
		if part.Part > 0 {
			parts++
		}
		if part.Part > 0 && part.State == "sent" {
			sent++
		}
	}
	if parts == 0 {
		return "ask the agent again"
	}
	return fmt.Sprintf("send part %d of %d and what follows; the agent is not asked", min(sent+1, parts), parts)
}

func since(at *time.Time, now time.Time) *float64 {
	if at == nil {
		return nil
	}
	s := now.Sub(*at).Seconds()
	return &s
}
