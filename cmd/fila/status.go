package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fila/internal/ledger"
	"fila/internal/postgres"
)

func newStatus(c *cli) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "status", Short: "One row a project: what waits, what runs, what needs a person", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.connected(cmd, c.status) },
	})
}

func (c *cli) status(ctx context.Context, pool *postgres.Pool) error {
	projects, err := ledger.New(pool).Overview(ctx)
	if err != nil {
		return err
	}
	return c.print(map[string]any{"projects": projects}, func(w io.Writer) {
		t := newTable(c.palette(), left("PROJECT"), right("WAITING"), right("OLDEST"), right("ACTIVE"), right("RETRYING"), right("UNKNOWN"),
			right("HUMAN"), right("SUSPENDED"), right("BY DEAD"), right("DEAD"), right("LATE P99"))
		for _, p := range projects {
			t.row(p.Project, fmt.Sprint(p.Waiting), seconds(p.OldestWaitSeconds), fmt.Sprint(p.ActiveTurns), fmt.Sprint(p.Retrying),
				t.alarm(yellow, fmt.Sprint(p.Unknown)), fmt.Sprint(p.Human), fmt.Sprint(p.Suspended), t.alarm(red, fmt.Sprint(p.SuspendedByDead)), t.alarm(red, fmt.Sprint(p.Dead)),
				milliseconds(p.LatenessP99Seconds))
		}
		t.write(w, "No project was ever served from this database.")
	})
}

// milliseconds is a lateness: small when all is well.
func milliseconds(s *float64) string {
	switch {
	case s == nil:
		return "-"
	case *s < 1:
		return fmt.Sprintf("%.0fms", max(*s, 0)*1000)
	}
	return seconds(s)
}
