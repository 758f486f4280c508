package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct {
	w     io.Writer
	total int
}

// importProgress counts the rows only for someone who looks on.
func (c *cli) importProgress(ctx context.Context, pool *postgres.Pool, name pgx.Identifier) (progress, error) {
	if !isTerminal(c.stderr) {
		return progress{}, nil
	}
	p := progress{w: c.stderr}
	if err := pool.QueryRow(ctx, of(name, "import_count")).Scan(&p.total); err != nil {
		return p, fmt.Errorf("count the rows: %w", err)
	}
	return p, nil
}

// show draws the bar for so many done; more may come while it runs.
func (p progress) show(done int) {
	if p.w == nil || p.total == 0 {
		return
	}
	const cells = 30
	full := min(cells, cells*done/p.total)
	fmt.Fprintf(p.w, "\r[%s%s] %d of %d", strings.Repeat("#", full), strings.Repeat(".", cells-full), done, max(done, p.total))
}

// end leaves the bar's line.
func (p progress) end() {
	if p.w != nil && p.total > 0 {
		fmt.Fprintln(p.w)
	}
}
