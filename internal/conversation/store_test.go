package conversation

import (
	"context"
	"testing"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

const (
	phone = "5531999990001"
	short = "+55 (31) 9999-0001"
)

type clinic struct {
	*testing.T
	*Store
}

// setup makes a database with the project clinic, whose bursts are due at once.
func setup(t *testing.T) clinic {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := clinic{t, NewStore(pool)}
	c.exec(`SELECT fila_open_project('clinic', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`)
	return c
}

func (c clinic) exec(sql string, arguments ...any) {
	c.Helper()
	if _, err := c.pool.Exec(c.Context(), sql, arguments...); err != nil {
		c.Fatal(err)
	}
}

func (c clinic) text(sql string, arguments ...any) (found string) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), sql, arguments...).Scan(&found); err != nil {
		c.Fatal(err)
	}
	return found
}

func (c clinic) waits(text string) {
	c.Helper()
	c.exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem) VALUES ($1, $2)`, phone, text)
	c.exec(`SELECT fila_adopt('clinic')`)
}

// turn makes a turn of one message, in the state given.
func (c clinic) turn(state string) (id int64) {
	c.Helper()
	c.waits("oi")
	if err := c.pool.QueryRow(c.Context(), `SELECT turn_id FROM fila_drain('clinic', ARRAY[$1], 'here', 30)`, phone).Scan(&id); err != nil {
		c.Fatal(err)
	}
	c.exec(`UPDATE turns SET state = $2, reason = 'the test', finished_at = CASE WHEN $2 IN ('done', 'superseded', 'discarded', 'dead') THEN now() END, lease_until = NULL WHERE id = $1`, id, state)
	return id
}

func (c clinic) mode() string {
	c.Helper()
	return c.text(`SELECT fila_mode(mode, until) FROM conversations WHERE phone = $1`, phone)
}

func (c clinic) done(want string) func(Done, error) {
	return func(done Done, err error) {
		c.Helper()
		if err != nil {
			c.Fatal(err)
		}
		if done.Phone != phone || want != "" && done.Status != want {
			c.Errorf("want %q of %s, got %+v", want, phone, done)
		}
	}
}

func (c clinic) refused(code, sentence string) func(Done, error) {
	return func(_ Done, err error) {
		c.Helper()
		if postgres.Code(err) != code || postgres.Refusal(err) != sentence {
			c.Errorf("want %s %q, got %v", code, sentence, err)
		}
	}
}

func TestFloor(t *testing.T) {
	t.Parallel()
	c, ctx, minutes := setup(t), t.Context(), 0.5
	c.waits("um")
	c.done("due now")(c.Flush(ctx, "clinic", short, ""))
	c.done("window restarted")(c.Typing(ctx, "clinic", short))
	c.done("")(c.Takeover(ctx, "clinic", short, &minutes, "ana", ""))
	if c.mode() != "human" {
		t.Errorf("mode after a takeover: want human, got %s", c.mode())
	}
	c.done("agent")(c.Release(ctx, "clinic", phone, "ana"))
	c.done("suspended")(c.Suspend(ctx, "clinic", phone, "ana", "agenda fora do ar"))
	c.refused("FI409", "the conversation is suspended; resume it")(c.Release(ctx, "clinic", phone, "ana"))
	c.done("agent")(c.Resume(ctx, "clinic", phone, "answer", "ana"))
	c.done("nothing waits")(c.Flush(ctx, "clinic", phone, "ana"))
	c.done("nothing waits")(c.Typing(ctx, "clinic", phone))
	if got := c.text(`SELECT string_agg(action || ' ' || actor, ', ' ORDER BY id) FROM audit`); got != "flush api, takeover ana, release ana, suspend ana, resume ana" {
		t.Errorf("audit: got %s", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c, ctx, zero := setup(t), t.Context(), 0.0
	c.refused("FI422", "by is required")(c.Takeover(ctx, "clinic", phone, nil, " ", ""))
	c.refused("FI422", "minutes must be over 0 and at most 525600 (a year)")(c.Takeover(ctx, "clinic", phone, &zero, "ana", ""))
	c.refused("FI422", "reason is required")(c.Suspend(ctx, "clinic", phone, "ana", ""))
	c.refused("FI422", "waiting must be answer or discard")(c.Resume(ctx, "clinic", phone, "", "ana"))
	c.refused("FI409", "the conversation is not suspended")(c.Resume(ctx, "clinic", phone, "answer", "ana"))
	c.refused("FI422", "phone is empty")(c.Release(ctx, "clinic", " ", "ana"))
	c.refused("FI404", "project nobody is not known here")(c.Release(ctx, "nobody", phone, "ana"))
	c.refused("FI404", "turn 7 is not known here")(c.Redrive(ctx, "clinic", 7, "ana", "r", false))
}

func TestTurnActions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, state string
		act         func(context.Context, *Store, int64) (Done, error)
		want        string
	}{
		{"confirm", "running", func(ctx context.Context, s *Store, id int64) (Done, error) { return s.Confirm(ctx, "clinic", id, nil) }, "proceed"},
		{"confirm by an old attempt", "running", func(ctx context.Context, s *Store, id int64) (Done, error) {
			old := 7
			return s.Confirm(ctx, "clinic", id, &old)
		}, "stale"},
		{"redrive", "dead", func(ctx context.Context, s *Store, id int64) (Done, error) {
			return s.Redrive(ctx, "clinic", id, "ana", "r", false)
		}, "retrying"},
		{"redrive in whichever project", "dead", func(ctx context.Context, s *Store, id int64) (Done, error) {
			return s.Redrive(ctx, "", id, "ana", "r", true)
		}, "retrying"},
		{"discard", "retrying", func(ctx context.Context, s *Store, id int64) (Done, error) {
			return s.Discard(ctx, "clinic", id, "ana", "r")
		}, "discarded"},
		{"resolve", "unknown", func(ctx context.Context, s *Store, id int64) (Done, error) {
			return s.Resolve(ctx, "clinic", id, "done", "ana", "r")
		}, "done"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := setup(t)
			c.done(tt.want)(tt.act(t.Context(), c.Store, c.turn(tt.state)))
		})
	}
}

func TestErase(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.turn("running")
	c.waits("segredo")
	counts, err := c.Erase(t.Context(), "clinic", short, "ana")
	if want := (Erased{Waiting: 1, Turns: 1, Receipts: 2}); err != nil || counts != want {
		t.Errorf("want %+v, got %+v, %v", want, counts, err)
	}
}

func TestAnActionWaitsForNobodyForEver(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.done("agent")(c.Release(t.Context(), "clinic", phone, "ana"))
	holder, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), `SELECT FROM conversations WHERE phone = $1 FOR UPDATE`, phone); err != nil {
		t.Fatal(err)
	}
	_, err = c.Takeover(t.Context(), "clinic", phone, nil, "ana", "")
	if class := postgres.Classify(err); class != postgres.Again {
		t.Errorf("want an error that says again, got class %v, %v", class, err)
	}
}
