// Package race proves that the database's functions hold when several sessions meet in the middle of them. It also keeps the
// faults that such proofs must catch, each a small edit of one function, so that a proof that has gone blind is noticed.
package race

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed testdata/*.sql
var files embed.FS

// Fault builds the fault of testdata/<name>.sql into the functions of one database. It fails where the text that the fault
// replaces is not there any more: then the fault has to follow the function.
func Fault(ctx context.Context, pool *pgxpool.Pool, name string) error {
	edit, err := files.ReadFile("testdata/edit.sql")
	if err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	fault, err := files.ReadFile("testdata/" + name + ".sql")
	if err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	if _, err := pool.Exec(ctx, string(edit)+string(fault), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("fault %s: %w", name, err)
	}
	return nil
}
