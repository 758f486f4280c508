// Package statement holds every SQL statement that the service runs, one a file, embedded. sql/ops holds those for psql.
package statement

import "embed"

// Files holds the statements under their file names; a test prepares each one against the migrated schema.
//
//go:embed *.sql
var Files embed.FS

// Named returns the text of the statement in the file name.sql. A name without a file is a mistake of the program.
func Named(name string) string {
	text, err := Files.ReadFile(name + ".sql")
	if err != nil {
		panic("statement: no file sql/" + name + ".sql")
	}
	return string(text)
}
