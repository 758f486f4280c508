package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const oldTable = `CREATE TABLE %s (id serial PRIMARY KEY, id_mensagem text NOT NULL DEFAULT '', telefone text NOT NULL,
	mensagem text NOT NULL, timestamp timestamptz DEFAULT now())`

func (o operator) oldTable(name string) {
	o.Helper()
	o.exec(fmt.Sprintf(oldTable, name))
}

// texts are what waits in a project, in registration order, as the service takes it up.
func (o operator) texts(project string) []string {
	o.Helper()
	rows, err := o.pool.Query(o.Context(), `SELECT mensagem FROM fila_mensagens WHERE projeto = $1 ORDER BY id`, project)
	if err != nil {
		o.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		o.Fatal(err)
	}
	return texts
}

func TestImport(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.oldTable("antiga")
	o.exec(`INSERT INTO antiga (id, id_mensagem, telefone, mensagem, timestamp) VALUES
		(3, '', '553199990001', 'três', '2020-01-01Z'), (1, 'o1', '5531999990001', 'um', '2020-01-01Z'), (2, 'o2', '5531999990002', 'dois', NULL)`)
	o.run("import", "--project", "clinic", "--table", "antiga").expect(t, 0, "3 rows moved from antiga to clinic")
	if got := o.texts("clinic"); !slices.Equal(got, []string{"um", "dois", "três"}) {
		t.Errorf("got %q", got)
	}
	if n := lookUp[int](o, `SELECT count(*) FROM antiga`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if year := lookUp[int](o, `SELECT extract(year FROM timestamp)::integer FROM fila_mensagens WHERE mensagem = 'um'`); year != 2020 {
		t.Errorf("the first message is of %d", year)
	}
	if adopted := lookUp[int](o, `SELECT count(*) FROM fila_adopt('clinic')`); adopted != 3 {
		t.Errorf("the service took up %d rows", adopted)
	}
	o.run("import", "--project", "clinic", "--table", "antiga", "--json").expect(t, 0, `"moved": 0`)
}

func TestImportInBatches(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.exec(`CREATE SCHEMA "Velha"`)
	o.oldTable(`"Velha"."fila; drop table turns"`)
	o.exec(`INSERT INTO "Velha"."fila; drop table turns" (telefone, mensagem) SELECT '55319999' || n % 7, n::text FROM generate_series(1, 2500) n`)
	o.run("import", "--project", "clinic", "--table", "Velha.fila; drop table turns").expect(t, 0, "2500 rows")
	for i, text := range o.texts("clinic") {
		if text != fmt.Sprint(i+1) {
			t.Fatalf("message %s is at place %d", text, i+1)
		}
	}
}

func TestImportBesideTheOldWriterAndAnotherImport(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.oldTable("antiga")
	const total = 300
	var together errgroup.Group
	together.Go(func() error {
		for i := range total {
			if _, err := o.pool.Exec(o.Context(), `INSERT INTO antiga (telefone, mensagem) VALUES ('5531999990001', $1::integer::text)`, i); err != nil {
				return err
			}
		}
		return nil
	})
	for range 2 {
		together.Go(func() error {
			for range 15 {
				if r := o.run("import", "--project", "clinic", "--table", "antiga"); r.code != 0 {
					return fmt.Errorf("import: %s", r.err)
				}
			}
			return nil
		})
	}
	if err := together.Wait(); err != nil {
		t.Fatal(err)
	}
	o.run("import", "--project", "clinic", "--table", "antiga").expect(t, 0)
	want := make([]string, total)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	if got := o.texts("clinic"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.oldTable("antiga")
	o.exec(`INSERT INTO antiga (telefone, mensagem) VALUES ('5531999990001', 'oi')`)
	o.exec(`CREATE VIEW vista AS SELECT * FROM antiga`)
	o.exec(`CREATE TABLE curta (id bigint, id_mensagem text, telefone text, mensagem text)`)
	o.exec(`CREATE TABLE outra (id bigint, id_mensagem text, telefone text, mensagem text, timestamp text)`)
	for _, tt := range []struct{ name, project, table, want string }{
		{"an unknown table", "clinic", "no_such_table", `"no_such_table" is not in this database`},
		{"an unknown schema", "clinic", "nowhere.antiga", `"nowhere"."antiga"`},
		{"an unknown project", "nobody", "antiga", "nobody"},
		{"a table without a column", "clinic", "curta", "timestamp"},
		{"a table with another type", "clinic", "outra", "timestamp"},
		{"a table of ours", "clinic", "turns", "id_mensagem"},
		{"the queue", "clinic", "fila_mensagens", "the queue itself"},
		{"a project's part of the queue", "clinic", "fila_mensagens_other", "the queue itself"},
		{"a view", "clinic", "vista", "not a table"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := o.run("import", "--project", tt.project, "--table", tt.table).expect(t, 1, tt.want)
			if !strings.HasPrefix(r.err, "fila: ") {
				t.Errorf("got %q", r.err)
			}
		})
	}
	if n := lookUp[int](o, `SELECT count(*) FROM antiga`); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}
