package retention_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
)

const kept = 100_000

// TestAPageCostsTheSameHoweverMuchIsKept keeps a hundred thousand young rows of every class, all of one project, and lets another
// project look for old ones of its own.
func TestAPageCostsTheSameHoweverMuchIsKept(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`SELECT fila_open_project('other', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`)
	c.keep("clinic", kept)
	c.exec(`ANALYZE turns, receipts, conversations, erased_receipts`)
	conn, err := c.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	const page = 100
	for _, plans := range []string{"force_custom_plan", "force_generic_plan"} {
		if _, err := conn.Exec(t.Context(), `SELECT set_config('plan_cache_mode', $1, false)`, plans); err != nil {
			t.Fatal(err)
		}
		for _, look := range []struct {
			what, statement string
			blocks          int
		}{
			{"turns", `SELECT fila_forget_turns('clinic', false, 0, $1)`, page},
			{"turns of a project without any", `SELECT fila_forget_turns('other', false, 0, $1)`, page},
			{"dead", `SELECT fila_forget_turns('clinic', true, 0, $1)`, 2 * page},
			{"dead of a project without any", `SELECT fila_forget_turns('other', true, 0, $1)`, page},
			{"receipts", `SELECT fila_forget_receipts(0, $1)`, page},
			{"digests", `SELECT fila_forget_erased($1)`, page},
			// Each of these is looked up in three tables.
			{"conversations", `SELECT fila_forget_conversations('clinic', '090000', $1)`, 12 * page},
		} {
			// The first call reads the catalogue as well.
			buffers(t, conn.Conn(), look.statement, page)
			if read := buffers(t, conn.Conn(), look.statement, page); read > look.blocks {
				t.Errorf("%s: a page of %d %s reads %d blocks, want %d at most", plans, page, look.what, read, look.blocks)
			}
		}
	}
	c.count("turns", kept)
	c.count("receipts", kept)
	c.count("erased_receipts", kept)
}

// keep makes that many conversations of a day ago, each with a turn and its receipt, and as many digests.
func (c *clinic) keep(project string, rows int) {
	c.Helper()
	c.exec(`
		WITH number AS MATERIALIZED (
			SELECT n, nextval('fila_mensagens_id_seq') AS id, lpad(n::text, 6, '0') AS phone, clock_timestamp() - interval '1 day' + n * interval '1 ms' AS at FROM generate_series(1, $2::int) n
		), receipt AS (
			INSERT INTO receipts (id, project, message_id, phone, status, received_at)
			SELECT id, $1, 'kept-' || n, phone, 'queued', at FROM number
		), conversation AS (
			INSERT INTO conversations (project, phone, address) SELECT $1, phone, phone FROM number
		), digest AS (
			INSERT INTO erased_receipts (project, digest, erased_at) SELECT $1, sha256(phone::bytea), at FROM number
		)
		INSERT INTO turns (project, phone, state, reason, fired_by, address, session_id, message_ids, messages, text, first_at, due_at, drained_at, finished_at)
		SELECT $1, phone, CASE n % 100 WHEN 0 THEN 'dead' ELSE 'done' END, 'the test', 'quiet', phone, phone, ARRAY[id], '[]', 'oi', at, at, at, at FROM number`,
		project, rows)
}

// buffers is how many blocks a statement reads, in memory or not, also in the functions that it calls.
func buffers(t *testing.T, conn *pgx.Conn, statement string, page int) int {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var plan []byte
	if err := tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+statement, page).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	var explained []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(plan, &explained); err != nil {
		t.Fatal(err)
	}
	return explained[0].Plan.Hit + explained[0].Plan.Read
}
