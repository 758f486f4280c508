package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/spf13/cobra"

	"fila/internal/postgres"
)

func newMigrate(c *cli) *cobra.Command {
	up := func(cmd *cobra.Command, _ []string) error { return c.migrate(cmd.Context()) }
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database's schema up to date", Args: noSubcommand, RunE: up,
		Long: "Brings the database's schema up to date. Several processes may do so at once: one migrates, the others wait for it.",
	}
	c.withJSON(cmd)
	cmd.AddCommand(
		c.withJSON(&cobra.Command{Use: "up", Short: "Apply what is missing", Args: exactly(), RunE: up}),
		c.withJSON(&cobra.Command{
			Use: "status", Short: "List what is applied and what is missing", Args: exactly(),
			RunE: func(cmd *cobra.Command, _ []string) error { return c.migrations(cmd.Context()) },
		}),
	)
	return cmd
}

func (c *cli) migrate(ctx context.Context) error {
	url, err := c.databaseURL(ctx)
	if err != nil {
		return err
	}
	applied, err := postgres.Migrate(ctx, url)
	if err != nil {
		return err
	}
	return c.print(map[string]int{"applied": applied}, func(w io.Writer) {
		if applied == 0 {
			fmt.Fprintln(w, "The schema is up to date.")
			return
		}
		fmt.Fprintf(w, "%s applied; the schema is up to date.\n", counted(applied, "migration", "migrations"))
	})
}

func (c *cli) migrations(ctx context.Context) error {
	url, err := c.databaseURL(ctx)
	if err != nil {
		return err
	}
	list, err := postgres.Migrations(ctx, url)
	if err != nil {
		return err
	}
	return c.print(list, func(w io.Writer) {
		t := newTable(c.palette(), right("VERSION"), left("MIGRATION"), left("APPLIED"))
		for _, m := range list {
			at := t.paint(yellow, "missing: run fila migrate")
			if m.Applied {
				at = m.At.UTC().Format(time.DateTime)
			}
			t.row(fmt.Sprint(m.Version), path.Base(m.Name), at)
		}
		t.write(w, "No migrations.")
	})
}
