package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"fila/internal/postgres"
	statement "fila/sql"
)

// importBatch is how many rows move in one transaction.
const importBatch = 1000

func newImport(c *cli) *cobra.Command {
	var project, table string
	cmd := c.withJSON(&cobra.Command{
		Use: "import", Short: "Move the rows of an older queue table into the queue", Args: exactly(),
		Long: "Moves the rows of an older queue table (id, id_mensagem, telefone, mensagem, timestamp) into the queue, in their order and\n" +
			"without losing or doubling one, also while the old writer still inserts; run it again after the old writer has stopped.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project", "table"); err != nil {
				return err
			}
			name, err := identifier(cmd, table)
			if err != nil {
				return err
			}
			return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error {
				return c.importTable(ctx, pool, project, name)
			})
		},
	})
	cmd.Flags().StringVar(&project, "project", "", "`project` that the messages belong to (required)")
	cmd.Flags().StringVar(&table, "table", "", "`name` of the older table, with its schema if need be (required)")
	return cmd
}

// identifier reads TABLE or SCHEMA.TABLE.
func identifier(cmd *cobra.Command, text string) (pgx.Identifier, error) {
	name := pgx.Identifier(strings.Split(text, "."))
	if len(name) > 2 || slices.Contains(name, "") || strings.Contains(text, "\x00") {
		return nil, usagef(cmd, "--table %q is not TABLE or SCHEMA.TABLE", text)
	}
	return name, nil
}

func (c *cli) importTable(ctx context.Context, pool *postgres.Pool, project string, name pgx.Identifier) error {
	if err := importable(ctx, pool, project, name); err != nil {
		return err
	}
	bar, err := c.importProgress(ctx, pool, name)
	if err != nil {
		return err
	}
	told := imported{Project: project, Table: strings.Join(name, ".")}
	for {
		n, err := told.moveBatch(ctx, pool, name, importBatch)
		if err != nil {
			bar.end()
			return fmt.Errorf("%s; %s moved before that, the others are where they were: mend it and import again", sentence(err), counted(told.Moved, "row", "rows"))
		}
		bar.show(told.Moved)
		if n < importBatch {
			break
		}
	}
	bar.end()
	if err := pool.QueryRow(ctx, of(name, "import_left")).Scan(&told.Left, &told.WithoutID); err != nil {
		return fmt.Errorf("count what is left: %w", err)
	}
	return c.print(told, told.write)
}

// imported is what became of the rows of an older table.
type imported struct {
	Project string `json:"project"`
	Table   string `json:"table"`
	Moved   int    `json:"moved"`
	// Ignored are those of Moved that cannot be answered; the service records them as ignored.
	Ignored int `json:"ignored"`
	// Left are still in the older table; WithoutID are those of them that will not move.
	Left      int `json:"left"`
	WithoutID int `json:"without_id"`
}

func (i imported) write(w io.Writer) {
	fmt.Fprintf(w, "%s moved from %s to %s.\n", counted(i.Moved, "row", "rows"), i.Table, i.Project)
	if i.Ignored > 0 {
		fmt.Fprintf(w, "%d of them without phone or text, or with one that is too long: the service records them as ignored, and does not answer them.\n", i.Ignored)
	}
	if i.WithoutID > 0 {
		fmt.Fprintf(w, "%s without an id left in %s, since nobody knows their order: give each an id, then import again.\n", counted(i.WithoutID, "row", "rows"), i.Table)
	}
	if more := i.Left - i.WithoutID; more > 0 {
		fmt.Fprintf(w, "%s came to %s meanwhile: import again once its writer has stopped.\n", counted(more, "row", "rows"), i.Table)
	}
}

// moveBatch moves the oldest rows in one transaction, and says how many.
func (i *imported) moveBatch(ctx context.Context, pool *postgres.Pool, name pgx.Identifier, limit int) (moved int, err error) {
	ignored := 0
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// In a statement before: the next one's snapshot has to be later than the lock.
		if _, err := tx.Exec(ctx, statement.Named("import_lock"), name.Sanitize()); err != nil {
			return err
		}
		return tx.QueryRow(ctx, of(name, "import_move"), i.Project, limit).Scan(&moved, &ignored)
	})
	if err == nil {
		i.Moved, i.Ignored = i.Moved+moved, i.Ignored+ignored
	}
	return moved, err
}

// of names the table in a statement, where a parameter cannot.
func of(name pgx.Identifier, file string) string {
	return strings.ReplaceAll(statement.Named(file), `"{table}"`, name.Sanitize())
}

// importable says why a table cannot be moved into a project.
func importable(ctx context.Context, pool *postgres.Pool, project string, name pgx.Identifier) error {
	if err := knownProject(ctx, pool, project); err != nil {
		return err
	}
	var found shape
	err := pool.QueryRow(ctx, statement.Named("import_inspect"), name.Sanitize()).Scan(&found.kind, &found.ours, &found.columns, &found.categories)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("table %s is not in this database: check its name and schema", name.Sanitize())
	}
	if err != nil {
		return fmt.Errorf("look at the table: %w", err)
	}
	if fault := found.fault(); fault != "" {
		return fmt.Errorf("table %s %s", name.Sanitize(), fault)
	}
	return nil
}

// shape is what is known of a table: its kind as pg_class has it, and its columns with the category of their type.
type shape struct {
	kind       string
	ours       bool
	columns    []string
	categories []string
}

// importColumns are those of an older queue with the categories that their types may have.
var importColumns = []struct{ name, categories, wanted string }{
	{"id", "N", "a number"},
	{"id_mensagem", "SN", "a text"},
	{"telefone", "SN", "a text"},
	{"mensagem", "S", "a text"},
	{"timestamp", "D", "a moment (timestamptz)"},
}

// fault says what is wrong with the table, "" when nothing is.
func (s shape) fault() string {
	switch {
	case s.ours:
		return "is the queue itself: name the older table"
	case s.kind != "r" && s.kind != "p":
		return "is not a table: name the one that holds the rows"
	}
	for _, c := range importColumns {
		place := slices.Index(s.columns, c.name)
		switch {
		case place < 0:
			return fmt.Sprintf("has no column %s: an older queue has id, id_mensagem, telefone, mensagem and timestamp", c.name)
		case !strings.Contains(c.categories, s.categories[place]):
			return fmt.Sprintf("has a column %s of another type: it must be %s", c.name, c.wanted)
		}
	}
	return ""
}
