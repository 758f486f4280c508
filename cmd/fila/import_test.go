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

// Old tables were made by hand: without a key, without time zones, with holes.
func TestImportOfOddRows(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.exec(`CREATE TABLE antiga (id numeric, id_mensagem varchar, telefone bigint, mensagem text, timestamp timestamp)`)
	o.exec(`INSERT INTO antiga VALUES
		(1, 'a', 5531999990001, 'um', '2020-01-01 10:00'), (2, NULL, 553199990001, 'dois', NULL), (3, 'a', 5531999990001, 'repetida', '2020-01-01 10:00'),
		(4, 'b', 5531999990001, '', '2020-01-01'), (5, 'c', 5531999990001, NULL, '2020-01-01'), (6, 'd', NULL, 'de ninguém', '2020-01-01'),
		(7, 'e', 5531999990001, 'sete', 'infinity'), (8, 'f', 5531999990001, 'oito', '-infinity'), (8, 'g', 5531999990002, 'oito também', NULL),
		(9, repeat('h', 257), 5531999990001, 'longa', NULL), (NULL, 'i', 5531999990001, 'sem id', NULL)`)
	o.run("import", "--project", "clinic", "--table", "antiga").expect(t, 0, "10 rows moved", "4 of them", "1 row without an id left")
	if left := lookUp[string](o, `SELECT string_agg(mensagem, ',') FROM antiga`); left != "sem id" {
		t.Errorf("%q is left", left)
	}
	o.exec(`SELECT fila_adopt('clinic')`)
	if got := o.texts("clinic"); len(got) != 5 || !slices.Equal(got[:3], []string{"um", "dois", "sete"}) {
		t.Errorf("got %q", got)
	}
	if n := lookUp[int](o, `SELECT count(*) FROM receipts WHERE status = 'ignored' AND reason IN ('empty', 'too_long')`); n != 4 {
		t.Errorf("%d rows are on record as ignored", n)
	}
	o.run("import", "--project", "clinic", "--table", "antiga", "--json").expect(t, 0, `"moved": 0`, `"left": 1`, `"without_id": 1`)
}

func TestImportKeepsWhatItCannotMove(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.oldTable("antiga")
	o.exec(`INSERT INTO antiga (telefone, mensagem) SELECT '5531999990001', n::text FROM generate_series(1, 1500) n`)
	o.exec(`CREATE FUNCTION deny() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`)
	o.exec(`CREATE TRIGGER deny BEFORE DELETE ON antiga FOR EACH ROW WHEN (OLD.id = 1200) EXECUTE FUNCTION deny()`)
	o.run("import", "--project", "clinic", "--table", "antiga").expect(t, 1, "1000 rows moved before that", "import again")
	if n := lookUp[int](o, `SELECT count(*) FROM antiga`) + len(o.texts("clinic")); n != 1500 {
		t.Errorf("there are %d rows", n)
	}
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
