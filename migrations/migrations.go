// Package migrations holds the schema's history as goose files, embedded.
package migrations

import "embed"

// FS holds one plain SQL file a migration, numbered in the order they are applied.
//
//go:embed *.sql
var FS embed.FS
