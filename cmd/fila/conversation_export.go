package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"fila/internal/postgres"
	statement "fila/sql"
)

func newExport(c *cli) *cobra.Command {
	var f floor
	cmd := c.withJSON(&cobra.Command{
		Use: "export PROJECT PHONE", Short: "Print everything that is held about the phone, as one JSON document", Args: conversationNamed,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error {
				return c.export(ctx, pool, args[0], args[1], c.somebody(f.by))
			})
		},
	})
	f.byFlag(cmd, "default the user of this session")
	return cmd
}

// export prints the document once its audit row is committed: who got the data is on record, whatever happens to the output.
func (c *cli) export(ctx context.Context, pool *postgres.Pool, project, phone, by string) error {
	document, err := exported(ctx, pool, project, phone, by)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		return fmt.Errorf("print export: %w", err)
	}
	text.WriteByte('\n')
	if _, err := c.stdout.Write(text.Bytes()); err != nil {
		return fmt.Errorf("print export: %w", err)
	}
	return nil
}

// exported holds the conversation's lock, so that the audit row of an export cannot outlive an erasure. Of a phone about which
// nothing is held nothing is written either.
func exported(ctx context.Context, pool *postgres.Pool, project, phone, by string) (json.RawMessage, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	document, held, err := exportTx(ctx, tx, project, phone, by)
	if err != nil || !held {
		return document, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return document, nil
}

func exportTx(ctx context.Context, tx pgx.Tx, project, phone, by string) (document json.RawMessage, held bool, err error) {
	key, err := value[string](ctx, tx, "conversation_lock", project, phone)
	if err != nil {
		return nil, false, fmt.Errorf("lock conversation: %w", err)
	}
	if err := tx.QueryRow(ctx, statement.Named("conversation_export"), project, key, by).Scan(&document, &held); err != nil {
		return nil, false, fmt.Errorf("export: %w", err)
	}
	if _, err := tx.Exec(ctx, statement.Named("audit_export"), project, key, by); err != nil {
		return nil, false, fmt.Errorf("export: %w", err)
	}
	return document, held, nil
}
