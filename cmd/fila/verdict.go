package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"fila/internal/conversation"
	"fila/internal/postgres"
	statement "fila/sql"
)

// verdict is who decides about turns, why, and which.
type verdict struct {
	by, reason string
	force      bool
	// ids names the turns, or project or all does.
	ids     []int64
	project string
	all     bool
}

func (v *verdict) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.by, "by", "", "`name` of who decides (required)")
	cmd.Flags().StringVar(&v.reason, "reason", "", "`why`, for the audit (required)")
}

// turns reads the ids; each counts once.
func (v *verdict) turns(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef(cmd, "ID is missing")
	}
	known := map[int64]bool{}
	for _, text := range args {
		id, err := turnID(cmd, text)
		if err != nil {
			return err
		}
		if !known[id] {
			known[id] = true
			v.ids = append(v.ids, id)
		}
	}
	return nil
}

// turnsOrMany reads the ids where neither --project nor --all stands for many.
func (v *verdict) turnsOrMany(cmd *cobra.Command, args []string) error {
	named := cmd.Flags().Changed("project")
	switch {
	case !named && !v.all:
		return v.turns(cmd, args)
	case named && v.all:
		return usagef(cmd, "--project and --all exclude each other")
	case named && v.project == "":
		return usagef(cmd, "--project is empty")
	case len(args) > 0:
		return usagef(cmd, "give either IDs, or --project or --all")
	}
	return nil
}

// chosen is which turns are meant. Of many those that wait for longest come first.
func (v *verdict) chosen(ctx context.Context, pool *postgres.Pool) ([]int64, error) {
	if v.ids != nil {
		return v.ids, nil
	}
	var project *string
	if !v.all {
		if err := knownProject(ctx, pool, v.project); err != nil {
			return nil, err
		}
		project = &v.project
	}
	rows, err := pool.Query(ctx, statement.Named("dead_oldest"), project)
	if err != nil {
		return nil, fmt.Errorf("list dead turns: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("list dead turns: %w", err)
	}
	return ids, nil
}

// knownProject fails for a project that was never served from this database.
func knownProject(ctx context.Context, pool *postgres.Pool, project string) error {
	_, err := value[bool](ctx, pool, "project_known", project)
	if errors.Is(err, pgx.ErrNoRows) {
		return unknownProject(project)
	}
	if err != nil {
		return fmt.Errorf("look for the project: %w", err)
	}
	return nil
}

func unknownProject(project string) error {
	return fmt.Errorf("project %q is not known here: fila status lists those that are; put a new one into the configuration and start fila serve once", project)
}

// settle does the same to each turn in a transaction of its own, and fails if one of them failed.
func (c *cli) settle(cmd *cobra.Command, v verdict, done string, act func(context.Context, *conversation.Store, int64) error) error {
	return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error {
		ids, err := v.chosen(ctx, pool)
		if err != nil {
			return err
		}
		store := conversation.NewStore(pool)
		var failed failures
		settled := []string{}
		for _, id := range ids {
			if err := act(ctx, store, id); err != nil {
				failed = append(failed, fmt.Errorf("turn %d was not %s: %s", id, done, sentence(err)))
				if ctx.Err() != nil {
					break
				}
				continue
			}
			settled = append(settled, fmt.Sprint(id))
		}
		err = c.print(map[string][]string{done: settled}, func(w io.Writer) {
			if len(ids) == 0 {
				fmt.Fprintln(w, "No dead turns.")
			}
			for _, id := range settled {
				fmt.Fprintf(w, "turn %s %s\n", id, done)
			}
		})
		if err != nil || failed == nil {
			return err
		}
		return failed
	})
}
