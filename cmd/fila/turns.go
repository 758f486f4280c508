package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fila/internal/conversation"
	"fila/internal/ledger"
	"fila/internal/postgres"
)

// maxTurns is how many turns one page may hold.
const maxTurns = 1000

func newTurns(c *cli) *cobra.Command {
	var f ledger.Filter
	cmd := c.withJSON(&cobra.Command{
		Use: "turns", Short: "List turns, newest first", Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.listTurns(cmd, f, turnTable, "No such turns.") },
	})
	filterFlags(cmd, &f)
	cmd.Flags().StringVar(&f.State, "state", "", "only those in this `state`: "+strings.Join(ledger.States, ", "))
	cmd.AddCommand(newTurnsShow(c), newTurnsResolve(c))
	return cmd
}

func newTurnsShow(c *cli) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "show ID", Short: "Show one turn: what was asked, what was answered, what went wrong", Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := turnID(cmd, args[0])
			if err != nil {
				return err
			}
			return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error { return c.showTurn(ctx, pool, id) })
		},
	})
}

func newTurnsResolve(c *cli) *cobra.Command {
	var v verdict
	var outcome string
	cmd := c.withJSON(&cobra.Command{
		Use: "resolve ID...", Short: "Say what became of turns whose outcome is unknown", Args: v.turns,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "outcome", "by", "reason"); err != nil {
				return err
			}
			if outcome != "done" && outcome != "not_done" {
				return usagef(cmd, "--outcome %q is neither done nor not_done", outcome)
			}
			return c.settle(cmd, v, "resolved", func(ctx context.Context, store *conversation.Store, id int64) error {
				_, err := store.Resolve(ctx, "", id, outcome, v.by, v.reason)
				return err
			})
		},
	})
	v.flags(cmd)
	cmd.Flags().StringVar(&outcome, "outcome", "", "done: it happened, what follows goes on; not_done: the same call again (required)")
	return cmd
}

func filterFlags(cmd *cobra.Command, f *ledger.Filter) {
	cmd.Flags().StringVar(&f.Project, "project", "", "only those of this `project`")
	cmd.Flags().StringVar(&f.Phone, "phone", "", "only those of this `phone`, in any of its forms")
	cmd.Flags().IntVar(&f.Limit, "limit", ledger.DefaultLimit, fmt.Sprintf("how many at most, up to %d", maxTurns))
	cmd.Flags().Int64Var(&f.Before, "before", 0, "only those older than the turn with this `id`")
}

func checkFilter(cmd *cobra.Command, f ledger.Filter) error {
	switch {
	case f.State != "" && !slices.Contains(ledger.States, f.State):
		return usagef(cmd, "--state %q is none of %s", f.State, strings.Join(ledger.States, ", "))
	case f.Limit < 1 || f.Limit > maxTurns:
		return usagef(cmd, "--limit %d is not between 1 and %d", f.Limit, maxTurns)
	case f.Before < 0:
		return usagef(cmd, "--before %d is no turn", f.Before)
	}
	return nil
}

// tabulate shows turns as of a moment.
type tabulate func(p palette, turns []ledger.Turn, now time.Time) *table

func (c *cli) listTurns(cmd *cobra.Command, f ledger.Filter, table tabulate, empty string) error {
	if err := checkFilter(cmd, f); err != nil {
		return err
	}
	return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error {
		if f.Project != "" {
			if err := knownProject(ctx, pool, f.Project); err != nil {
				return err
			}
		}
		page, err := ledger.New(pool).Page(ctx, f)
		if err != nil {
			return err
		}
		now, err := value[time.Time](ctx, pool, "clock")
		if err != nil {
			return fmt.Errorf("read the database's clock: %w", err)
		}
		return c.print(page, func(w io.Writer) {
			table(c.palette(), page.Turns, now).write(w, empty)
			if page.Before != nil {
				fmt.Fprintf(w, "There are older ones: --before %s\n", *page.Before)
			}
		})
	})
}

func turnTable(p palette, turns []ledger.Turn, now time.Time) *table {
	t := newTable(p, right("ID"), left("PROJECT"), left("PHONE"), left("STATE"), left("FIRED BY"), right("MESSAGES"), right("ATTEMPT"), right("AGE"), left("REASON"))
	for _, turn := range turns {
		t.row(turn.ID, turn.Project, turn.Phone, p.state(turn.State), turn.FiredBy, fmt.Sprint(len(turn.Messages)), fmt.Sprint(turn.Attempt),
			age(now.Sub(turn.FirstAt)), shortened(orDash(turn.Reason)))
	}
	return t
}

// shortened keeps a reason on its line.
func shortened(text string) string {
	const most = 60
	text = strings.ReplaceAll(harmless(text), "\n", " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func (c *cli) showTurn(ctx context.Context, pool *postgres.Pool, id int64) error {
	turn, err := readTurn(ctx, pool, id)
	if err != nil {
		return err
	}
	return c.writeTurn(ctx, pool, turn)
}

func (c *cli) writeTurn(ctx context.Context, pool *postgres.Pool, turn ledger.Turn) error {
	now, err := value[time.Time](ctx, pool, "clock")
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	return c.print(turn, func(w io.Writer) { writeTurn(w, c.palette(), turn, now) })
}

func readTurn(ctx context.Context, pool *postgres.Pool, id int64) (ledger.Turn, error) {
	turn, err := ledger.New(pool).Turn(ctx, "", id)
	if errors.Is(err, ledger.ErrNotFound) {
		return turn, fmt.Errorf("turn %d is not known here: fila turns lists those that are", id)
	}
	return turn, err
}

func turnID(cmd *cobra.Command, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usagef(cmd, "%q is no turn's id, which is a whole number", text)
	}
	return id, nil
}
