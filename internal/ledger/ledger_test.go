package ledger_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"fila/internal/ledger"
	"fila/internal/pgtest"
)

// clinic is a database with two projects whose bursts are due at once.
type clinic struct {
	*testing.T
	pool *pgxpool.Pool
	ledger.Ledger
}

func setup(t *testing.T) clinic {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := clinic{T: t, pool: pool, Ledger: ledger.New(pool)}
	for _, name := range []string{"clinic", "other"} {
		c.open(name, 0)
	}
	return c
}

func (c clinic) exec(sql string, args ...any) {
	c.Helper()
	if _, err := c.pool.Exec(c.Context(), sql, args...); err != nil {
		c.Fatal(err)
	}
}

// open sets a project's window, in seconds.
func (c clinic) open(project string, window float64) {
	c.Helper()
	c.exec(`SELECT fila_open_project($1, 'BR', $2, 5 * $2::double precision, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`, project, window)
}

func (c clinic) push(project, phone string, texts ...string) {
	c.Helper()
	for _, text := range texts {
		c.exec(`SELECT fila_push(ARRAY[$1], ARRAY['id-' || $3], ARRAY[fila_key($2, 'BR')], ARRAY[$2], ARRAY[$3], ARRAY['text'], ARRAY[NULL],
			ARRAY[NULL], ARRAY[NULL], ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY[NULL])`, project, phone, text)
	}
}

// drain makes a turn of what waits.
func (c clinic) drain(project, phone string) int64 {
	c.Helper()
	var id *int64
	err := c.pool.QueryRow(c.Context(), `SELECT turn_id FROM fila_drain($1, ARRAY[fila_key($2, 'BR')], 'instance-1', 30)`, project, phone).Scan(&id)
	if err != nil || id == nil {
		c.Fatalf("drain: turn %v, error %v", id, err)
	}
	return *id
}

func (c clinic) die(id int64) {
	c.Helper()
	c.exec(`SELECT fila_fail($1, 1, 'agent', NULL, 'dead', 'status 500', true, 0)`, id)
}

const phone = "5531999990001"

func TestTurn(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.push("clinic", phone, "oi", "tudo bem?")
	id := c.drain("clinic", phone)
	c.exec(`SELECT fila_reply('clinic', $1, 1, 'Temos 14h', ARRAY['Temos', '14h'], false, true, 'instance-1', 30)`, id)
	c.exec(`SELECT fila_sent($1, 1, 1, 'out-1', true)`, id)

	got, err := c.Turn(c.Context(), "clinic", id)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != strconv.FormatInt(id, 10) || got.Phone != phone || got.State != "sending" || got.Text != "oi tudo bem?" || *got.Reply != "Temos 14h" {
		t.Errorf("got %+v", got)
	}
	if len(got.Messages) != 2 || *got.Messages[0].ID != "id-oi" || got.Messages[1].Text != "tudo bem?" || string(got.Messages[0].Metadata) != "{}" {
		t.Errorf("messages %+v", got.Messages)
	}
	if len(got.Parts) != 2 || *got.Parts[0].ProviderID != "out-1" || got.Parts[0].State != "sent" || got.Parts[1].State != "sending" {
		t.Errorf("parts %+v", got.Parts)
	}
	moments := []time.Time{got.FirstAt, got.DueAt, got.DrainedAt, *got.RepliedAt}
	if !slices.IsSortedFunc(moments, time.Time.Compare) || got.FirstAt.Location() != time.UTC {
		t.Errorf("moments %v", moments)
	}
	if got.Errors == nil || got.FinishedAt != nil {
		t.Errorf("errors %v, finished at %v", got.Errors, got.FinishedAt)
	}
}

func TestTurnOfNobody(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.push("clinic", phone, "oi")
	id := c.drain("clinic", phone)
	for _, tt := range []struct {
		name, project string
		id            int64
		want          error
	}{
		{"its own project", "clinic", id, nil},
		{"any project", "", id, nil},
		{"another project", "other", id, ledger.ErrNotFound},
		{"no such turn", "clinic", id + 1000, ledger.ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := c.Turn(t.Context(), tt.project, tt.id); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestTurnDocument(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.push("clinic", phone, "oi")
	turn, err := c.Turn(c.Context(), "clinic", c.drain("clinic", phone))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(turn)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"reply": "null", "parts": "[]", "errors": "[]", "replied_at": "null", "finished_at": "null", "next_attempt_at": "null",
		"superseded_by": "null", "reason": "null", "attempt": "1", "fired_by": `"quiet"`, "instance": `"instance-1"`, "project": `"clinic"`,
	}
	for key, value := range want {
		if string(document[key]) != value {
			t.Errorf("%s is %s, want %s", key, document[key], value)
		}
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	c := setup(t)
	const second = "5531999990002"
	var ids []string
	for _, step := range []struct{ project, phone string }{{"clinic", phone}, {"clinic", second}, {"other", phone}, {"clinic", phone}} {
		c.push(step.project, step.phone, "text "+strconv.Itoa(len(ids)))
		id := c.drain(step.project, step.phone)
		ids = append(ids, strconv.FormatInt(id, 10))
		if len(ids) == 1 {
			c.die(id)
		}
	}
	before, err := strconv.ParseInt(ids[3], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		filter ledger.Filter
		want   []string
	}{
		{"all", ledger.Filter{}, []string{ids[3], ids[2], ids[1], ids[0]}},
		{"a project", ledger.Filter{Project: "clinic"}, []string{ids[3], ids[1], ids[0]}},
		{"a phone", ledger.Filter{Phone: phone}, []string{ids[3], ids[2], ids[0]}},
		{"a phone without its ninth digit", ledger.Filter{Project: "other", Phone: "553199990001"}, []string{ids[2]}},
		{"dead ones", ledger.Filter{State: "dead"}, []string{ids[0]}},
		{"running ones", ledger.Filter{State: "running", Project: "clinic"}, []string{ids[3], ids[1]}},
		{"done ones", ledger.Filter{State: "done"}, []string{}},
		{"older ones", ledger.Filter{Before: before}, []string{ids[2], ids[1], ids[0]}},
		{"a page", ledger.Filter{Before: before, Limit: 2}, []string{ids[2], ids[1]}},
		{"no such project", ledger.Filter{Project: "nobody"}, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turns, err := c.Turns(t.Context(), tt.filter)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, turn := range turns {
				got = append(got, turn.ID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	c := setup(t)
	var ids []string
	for i := range 3 {
		c.push("clinic", "553199999000"+strconv.Itoa(i), "oi "+strconv.Itoa(i))
		ids = append(ids, strconv.FormatInt(c.drain("clinic", "553199999000"+strconv.Itoa(i)), 10))
	}
	for limit, want := range map[int]string{1: ids[2], 2: ids[1], 3: "", 4: "", 0: ""} {
		page, err := c.Page(c.Context(), ledger.Filter{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		before := ""
		if page.Before != nil {
			before = *page.Before
		}
		if before != want || limit > 0 && len(page.Turns) != min(limit, 3) {
			t.Errorf("limit %d: %d turns, before %q, want %q", limit, len(page.Turns), before, want)
		}
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.push("clinic", phone, "antes")
	first := c.drain("clinic", phone)
	c.open("clinic", 10)
	c.push("clinic", phone, "oi", "tudo bem?")

	got, err := c.Conversation(c.Context(), "clinic", "+55 (31) 9999-0001")
	if err != nil {
		t.Fatal(err)
	}
	if got.Phone != phone || got.Mode != "agent" || got.Until != nil || got.Waiting != 2 {
		t.Errorf("got %+v", got)
	}
	if due := got.DueAt.Sub(*got.LastAt); !got.FirstAt.Before(*got.LastAt) || due != 10*time.Second {
		t.Errorf("first at %v, last at %v, due %v after it", got.FirstAt, got.LastAt, due)
	}
	if *got.ActiveTurn != strconv.FormatInt(first, 10) || len(got.Turns) != 1 || got.Turns[0].ID != *got.ActiveTurn {
		t.Errorf("active turn %v of %v", *got.ActiveTurn, got.Turns)
	}
}

func TestConversationDueByCeilingAndFlush(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.open("clinic", 10)
	c.push("clinic", phone, "oi")
	c.exec(`UPDATE fila_mensagens SET timestamp = timestamp - interval '45 seconds'`)
	c.push("clinic", phone, "tudo bem?")
	got, err := c.Conversation(c.Context(), "clinic", phone)
	if err != nil {
		t.Fatal(err)
	}
	if due := got.DueAt.Sub(*got.FirstAt); due != 50*time.Second {
		t.Errorf("due %v after the first message, want the ceiling", due)
	}
	c.exec(`SELECT fila_flush('clinic', $1, 'ana')`, phone)
	if got, err = c.Conversation(c.Context(), "clinic", phone); err != nil {
		t.Fatal(err)
	}
	if due := got.DueAt.Sub(*got.LastAt); due >= 5*time.Second {
		t.Errorf("due %v after the last message in spite of a flush", due)
	}
}

func TestConversationWithAPerson(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`SELECT fila_takeover('clinic', $1, 30, 'ana', NULL)`, phone)
	got, err := c.Conversation(c.Context(), "clinic", phone)
	if err != nil {
		t.Fatal(err)
	}
	if got.Mode != "human" || got.Until == nil {
		t.Errorf("mode %s until %v", got.Mode, got.Until)
	}
	c.exec(`UPDATE conversations SET until = clock_timestamp()`)
	if got, err = c.Conversation(c.Context(), "clinic", phone); err != nil {
		t.Fatal(err)
	}
	if got.Mode != "agent" || got.Until != nil {
		t.Errorf("mode %s until %v once the time is over", got.Mode, got.Until)
	}
}

func TestConversationOfAStranger(t *testing.T) {
	t.Parallel()
	c := setup(t)
	got, err := c.Conversation(c.Context(), "clinic", phone)
	if err != nil || got.Mode != "agent" || got.Waiting != 0 || got.Turns == nil || got.DueAt != nil || got.ActiveTurn != nil {
		t.Errorf("got %+v, error %v", got, err)
	}
	if _, err := c.Conversation(c.Context(), "nobody", phone); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.push("clinic", phone, "oi")
	c.die(c.drain("clinic", phone))
	c.push("clinic", phone, "alô?")
	got, err := c.Overview(c.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Project != "clinic" || got[1].Project != "other" {
		t.Fatalf("got %+v", got)
	}
	if row := got[0]; row.Waiting != 1 || row.Dead != 1 || row.OldestWaitSeconds == nil || row.LatenessP99Seconds == nil {
		t.Errorf("clinic: %+v", row)
	}
	if row := got[1]; row.Waiting != 0 || row.OldestWaitSeconds != nil || row.LatenessP99Seconds != nil {
		t.Errorf("other: %+v", row)
	}
}
