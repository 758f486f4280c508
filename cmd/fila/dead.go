package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fila/internal/conversation"
	"fila/internal/ledger"
	"fila/internal/postgres"
)

func newDead(c *cli) *cobra.Command {
	return group("dead", "Dead letters: turns that failed for good", newDeadList(c), newDeadShow(c), newDeadRedrive(c), newDeadDiscard(c))
}

func newDeadList(c *cli) *cobra.Command {
	f := ledger.Filter{State: "dead"}
	cmd := c.withJSON(&cobra.Command{
		Use: "list", Short: "List dead turns, newest first", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.listTurns(cmd, f, deadTable, "No dead turns.") },
	})
	filterFlags(cmd, &f)
	return cmd
}

// deadTable shows what a person needs in order to decide, and how long there is to do so.
func deadTable(p palette, turns []ledger.Turn, now time.Time) *table {
	t := newTable(p, right("ID"), left("PROJECT"), left("PHONE"), right("MESSAGES"), right("ATTEMPT"), right("AGE"), right("LEFT"), left("REASON"))
	for _, turn := range turns {
		left := "-"
		if turn.KeptUntil != nil {
			left = age(max(0, turn.KeptUntil.Sub(now)))
		}
		t.row(turn.ID, turn.Project, turn.Phone, fmt.Sprint(len(turn.Messages)), fmt.Sprint(turn.Attempt), age(now.Sub(turn.FirstAt)), left, shortened(orDash(turn.Reason)))
	}
	return t
}

func newDeadShow(c *cli) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "show ID", Short: "Show why a turn died", Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := turnID(cmd, args[0])
			if err != nil {
				return err
			}
			return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error { return c.showDead(ctx, pool, id) })
		},
	})
}

func (c *cli) showDead(ctx context.Context, pool *postgres.Pool, id int64) error {
	turn, err := readTurn(ctx, pool, id)
	switch {
	case err != nil:
		return err
	case turn.State != "dead":
		return fmt.Errorf("turn %d is %s, not dead: fila turns show %d shows it", id, turn.State, id)
	}
	return c.writeTurn(ctx, pool, turn)
}

func newDeadRedrive(c *cli) *cobra.Command {
	var v verdict
	var dryRun bool
	cmd := c.withJSON(&cobra.Command{
		Use: "redrive ID... | --project P | --all", Short: "Begin dead turns again: the same turn under the same key", Args: v.turnsOrMany,
		Long: "Begins dead turns again, each under its own key: those that are named, or all of a project, or all there are, the oldest first.\n" +
			"Of one conversation only one turn may be open: the others are refused, until that one has ended.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dryRun {
				return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error { return c.previewRedrive(ctx, pool, v) })
			}
			if err := required(cmd, "by", "reason"); err != nil {
				return err
			}
			return c.settle(cmd, v, "redriven", func(ctx context.Context, store *conversation.Store, id int64) error {
				_, err := store.Redrive(ctx, "", id, v.by, v.reason, v.force)
				return err
			})
		},
	})
	v.flags(cmd)
	cmd.Flags().BoolVar(&v.force, "force", false, "also when a later turn of the conversation was answered already")
	cmd.Flags().StringVar(&v.project, "project", "", "all dead turns of this `project`, the oldest first")
	cmd.Flags().BoolVar(&v.all, "all", false, "all dead turns, the oldest first")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing; say what would happen to whom")
	return cmd
}

func newDeadDiscard(c *cli) *cobra.Command {
	var v verdict
	cmd := c.withJSON(&cobra.Command{
		Use: "discard ID...", Short: "Close turns that are not worth an answer any more", Args: v.turns,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "by", "reason"); err != nil {
				return err
			}
			return c.settle(cmd, v, "discarded", func(ctx context.Context, store *conversation.Store, id int64) error {
				_, err := store.Discard(ctx, "", id, v.by, v.reason)
				return err
			})
		},
	})
	v.flags(cmd)
	return cmd
}
