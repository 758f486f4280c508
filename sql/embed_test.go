package statement_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"fila/internal/pgtest"
	statement "fila/sql"
)

// names lists the embedded statements.
func names(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(statement.Files, "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d statements, %v", len(files), err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(file, ".sql")
	}
	return files
}

func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// An import names its table in place of a parameter.
	const old = `CREATE TABLE "{table}" (id bigint, id_mensagem text, telefone text, mensagem text, timestamp timestamptz)`
	if _, err := conn.Exec(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), statement.Named("bench_old_table")); err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t) {
		if name == "bench_old_table" { // several statements in one
			continue
		}
		if _, err := conn.Prepare(t.Context(), name, statement.Named(name)); err != nil {
			t.Errorf("%s.sql: %v", name, err)
		}
	}
}

func TestStatementsAreWrittenAlike(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	ops, err := filepath.Glob("ops/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, ops...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			t.Errorf("%s does not begin with a comment that says what it is for", file)
		}
		if !strings.HasSuffix(string(text), "\n") || strings.HasSuffix(string(text), "\n\n") {
			t.Errorf("%s does not end with one newline", file)
		}
		if strings.Contains(string(text), "\t") {
			t.Errorf("%s is indented with tabs", file)
		}
	}
}

// TestStatementsAreUsed holds the files and the calls together: neither is there without the other.
func TestStatementsAreUsed(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, name := range names(t) {
		known[name] = true
	}
	used := map[string]bool{}
	for _, file := range sources(t) {
		for _, literal := range literals(file) {
			used[literal] = true
		}
		for _, called := range namedCalls(file) {
			if !known[called] {
				t.Errorf("%s: Named(%q) has no file", file.Name, called)
			}
		}
	}
	for name := range known {
		if !used[name] {
			t.Errorf("nothing uses %s.sql", name)
		}
	}
}

// sources parses every Go file of the module that is no test.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	var files []*ast.File
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func literals(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := text(n); ok {
			found = append(found, s)
		}
		return true
	})
	return found
}

func namedCalls(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Named" {
			if s, ok := text(call.Args[0]); ok {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}

func text(n ast.Node) (string, bool) {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(literal.Value)
	return s, err == nil
}

func TestNamedWithoutFile(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a name without a file went through")
		}
	}()
	statement.Named("no_such_statement")
}
