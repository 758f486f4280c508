package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

// TestBatchesAreShared: what gathers while nobody writes goes into one commit, and no batch is longer than allowed.
func TestBatchesAreShared(t *testing.T) {
	t.Parallel()
	c := prepare(t, pgtest.New(t), Options{Writers: 1, BatchMessages: 20, Patience: time.Minute})
	var requests [][]Message
	for n := range 50 {
		requests = append(requests, []Message{says("norte", n%7, strconv.Itoa(n), fmt.Sprintf("%02d", n))})
	}
	answers := c.gather(requests...)
	c.start()
	for _, a := range answers {
		if _, err := a.wait(); err != nil {
			t.Error(err)
		}
	}
	c.want(value[[]string](c, "SELECT array_agg(n::text ORDER BY first) FROM (SELECT count(*) AS n, min(id) AS first FROM fila_mensagens GROUP BY xmin) b"),
		"20", "20", "10")
	if !value[bool](c, "SELECT array_agg(mensagem ORDER BY id) = array_agg(mensagem ORDER BY mensagem) FROM fila_mensagens") {
		t.Error("the order of arrival is lost")
	}
}

// TestALongRequestGoesAlone: an array longer than a batch is a batch.
func TestALongRequestGoesAlone(t *testing.T) {
	t.Parallel()
	c := prepare(t, pgtest.New(t), Options{Writers: 1, BatchMessages: 5, ProjectMessages: 5, Patience: time.Minute})
	var long []Message
	for n := range 12 {
		long = append(long, says("norte", n, strconv.Itoa(n), "oi"))
	}
	answers := c.gather(long, []Message{says("sul", 1, "a", "oi")})
	c.start()
	for _, a := range answers {
		if _, err := a.wait(); err != nil {
			t.Error(err)
		}
	}
	if n := value[int](c, "SELECT count(DISTINCT xmin::text)::integer FROM fila_mensagens"); n != 2 {
		t.Errorf("%d commits", n)
	}
}

// TestAFloodKeepsNobodyWaiting: the single message of one clinic is in the next batch, however long the other's line is.
func TestAFloodKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	c := prepare(t, pgtest.New(t), Options{Writers: 1, BatchMessages: 20, Patience: time.Minute})
	var requests [][]Message
	for n := range 200 {
		requests = append(requests, []Message{says("norte", n, strconv.Itoa(n), "campanha")})
	}
	requests = append(requests, []Message{says("sul", 1, "a", "oi")})
	answers := c.gather(requests...)
	c.start()
	for _, a := range answers {
		if _, err := a.wait(); err != nil {
			t.Error(err)
		}
	}
	before := value[int](c, "SELECT count(*)::integer FROM fila_mensagens WHERE id < (SELECT id FROM fila_mensagens WHERE projeto = 'sul')")
	if before >= 20 {
		t.Errorf("%d messages of the flood went before the other clinic's only one", before)
	}
}

func TestAFullLineRefuses(t *testing.T) {
	t.Parallel()
	c := prepare(t, pgtest.New(t), Options{Writers: 1, ProjectMessages: 10, Patience: time.Minute})
	var full []Message
	for n := range 9 {
		full = append(full, says("norte", n, strconv.Itoa(n), "oi"))
	}
	c.gather(full)
	if _, err := c.Push(t.Context(), full[:2]); !errors.Is(err, ErrUnavailable) {
		t.Errorf("more than the line takes: %v", err)
	}
	// The other clinic's line is empty.
	answers := c.gather([]Message{says("sul", 1, "a", "oi")}, []Message{says("norte", 10, "10", "oi")})
	c.start()
	for _, a := range answers {
		if _, err := a.wait(); err != nil {
			t.Error(err)
		}
	}
	if n := len(c.waiting("norte")); n != 10 {
		t.Errorf("%d messages wait", n)
	}
}

func TestLockedTables(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"receipts", "conversations", "fila_mensagens_norte", "projects"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			c := setup(t, Options{Patience: time.Second})
			letGo := c.hold("LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE")
			var all sync.WaitGroup
			for n := range 20 {
				all.Go(func() {
					if _, err := c.Push(t.Context(), []Message{says("norte", n, strconv.Itoa(n), "oi")}); !errors.Is(err, ErrUnavailable) {
						t.Errorf("got %v", err)
					}
				})
			}
			all.Wait()
			letGo()
			// Whatever was sent to the server is over before the next commit of each writer.
			for n := range 20 {
				c.push(says("sul", n, strconv.Itoa(n), "oi"))
			}
			if n := value[int](c, "SELECT count(*)::integer FROM receipts WHERE project = 'norte'"); n != 0 {
				t.Errorf("%d messages were stored after their callers had been told they were not", n)
			}
		})
	}
}

// TestAHeldConversationCostsOnlyItself: somebody left a session open that holds one conversation.
func TestAHeldConversationCostsOnlyItself(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"known": "SELECT FROM conversations WHERE phone = '5531900000000' FOR UPDATE",
		"being made": `SELECT fila_push('{norte}', '{x}', '{5531900000007}', '{5531900000007}', '{oi}', '{text}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}',
			'{NULL}')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A minute of patience: whoever has to wait for the held conversation would wait for as long.
			c := prepare(t, pgtest.New(t), Options{Writers: 1, Patience: time.Minute})
			before := c.gather([]Message{says("norte", 0, "first", "oi")})
			c.start()
			if _, err := before[0].wait(); err != nil {
				t.Fatal(err)
			}
			letGo := c.hold(hold)
			held := 0
			if name == "being made" {
				held = 7
			}
			stuck := make(chan error, 2)
			for n := range 2 {
				go func() {
					_, err := c.Push(t.Context(), []Message{says("norte", held, fmt.Sprint("held", n), "oi")})
					stuck <- err
				}()
			}
			for round := range 3 {
				var all sync.WaitGroup
				for n := 10; n < 60; n++ {
					all.Go(func() {
						receipts, err := c.Push(t.Context(), []Message{says("norte", n, fmt.Sprint(n, "-", round), "oi")})
						if err != nil || receipts[0].Status != Queued {
							t.Error(receipts, err)
						}
					})
				}
				all.Wait()
			}
			select {
			case err := <-stuck:
				t.Errorf("a message of the held conversation came through: %v", err)
			default:
			}
			letGo()
			for range cap(stuck) {
				if err := <-stuck; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAHeldConversationIsRefusedInTime(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{Patience: time.Second})
	c.push(says("norte", 0, "first", "oi"))
	letGo := c.hold("SELECT FROM conversations FOR UPDATE")
	if _, err := c.Push(t.Context(), []Message{says("norte", 0, "second", "oi")}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	letGo()
	c.want(c.push(says("norte", 0, "second", "oi")), "queued")
	await(t, "the conversation is still taken for held", func() bool { return !c.standsAside(0) })
}

// standsAside tells whether a message of the patient would be put aside.
func (c *clinic) standsAside(patient int) bool {
	r := &request{messages: []Message{says("norte", patient, "", "")}}
	return slices.ContainsFunc(c.writers, func(w *writer) bool { return w.aside.concerns(r) })
}

func TestTooManyStandAside(t *testing.T) {
	t.Parallel()
	a := newAside()
	for n := range asideLimit {
		if !a.add(&request{messages: []Message{says("norte", n, "", "oi")}}) {
			t.Fatalf("request %d was refused", n)
		}
	}
	if a.add(&request{messages: []Message{says("norte", 0, "", "oi")}}) {
		t.Error("one more found a place")
	}
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	url := server.URL("postgres")
	if _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	c := prepare(t, url, Options{}).start()
	c.want(c.push(says("norte", 1, "a", "oi")), "queued")
	old := server.PID()
	if err := syscall.Kill(old, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	await(t, "the server does not end", func() bool { return server.PID() != old })
	// The server is started again by itself: repeat as a provider does.
	repeated := func(messages ...Message) (receipts []Receipt) {
		await(t, "the messages were not taken after the server came back", func() bool {
			var err error
			if receipts, err = c.Push(t.Context(), messages); err != nil && !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
			return err == nil
		})
		return receipts
	}
	if receipts := repeated(says("norte", 1, "b", "oi")); receipts[0].Status == Ignored {
		t.Errorf("the message is %v", receipts[0])
	}
	for _, r := range repeated(says("norte", 1, "a", "oi"), says("norte", 1, "b", "oi")) {
		if r.Status != Duplicate {
			t.Errorf("the repetition is %v", r)
		}
	}
	// Some connections of the pool may still be the old server's.
	c.pool.Reset()
	if n := len(c.waiting("norte")); n != 2 {
		t.Errorf("%d messages wait", n)
	}
}

// losing is a connection that takes a request, and breaks when its answer comes, the next time that lose is set.
type losing struct {
	net.Conn
	lose *atomic.Bool
}

// Read is net.Conn's.
func (l losing) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err == nil && l.lose.CompareAndSwap(true, false) {
		_ = l.Close()
		return 0, io.EOF
	}
	return n, err
}

// TestALostCommit: what is sent again over a new connection is a duplicate of itself, and whoever sets timers is told so.
func TestALostCommit(t *testing.T) {
	t.Parallel()
	var lose atomic.Bool
	var told []string
	c := prepare(t, pgtest.New(t), Options{})
	config := c.pool.Config()
	config.MaxConns = 1 // the one that has asked for the types before, so that the next answer is that of the commit
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return losing{conn, &lose}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c.Queue = New(Options{Pool: pool, Log: zerolog.Nop(), Stored: func(m Message, r Receipt) { told = append(told, fmt.Sprint(m.ID, " ", r.Status, " ", r.Resent)) }})
	c.start()
	c.want(c.push(says("norte", 1, "a", "oi")), "queued")
	lose.Store(true)
	c.want(c.push(says("norte", 1, "b", "olá")), "duplicate")
	c.want(c.push(says("norte", 1, "b", "olá"), says("norte", 1, "c", "bom dia")), "duplicate", "queued")
	c.want(told, "a queued false", "b duplicate true", "b duplicate false", "c queued false")
	c.want(c.waiting("norte"), "oi", "olá", "bom dia")
}

func TestNoDatabaseAtAll(t *testing.T) {
	t.Parallel()
	q := New(Options{Pool: open(t, "postgres://nobody@127.0.0.1:1/nothing")})
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = q.Run(ctx) })
	defer ran.Wait()
	defer cancel()
	if _, err := q.Push(t.Context(), []Message{says("norte", 1, "a", "oi")}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestTheCallerLeaves while its message is being committed: the message is there, and whoever waits for it is told.
func TestTheCallerLeaves(t *testing.T) {
	t.Parallel()
	told := make(chan Message, 1)
	c := setup(t, Options{Patience: time.Minute, Stored: func(m Message, _ Receipt) { told <- m }})
	letGo := c.hold("LOCK TABLE receipts IN ACCESS EXCLUSIVE MODE")
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := c.Push(ctx, []Message{says("norte", 1, "a", "oi")})
		answer <- err
	}()
	await(t, "the commit does not begin", func() bool {
		return value[bool](c, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))")
	})
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	letGo()
	if m := <-told; m.ID != "a" {
		t.Errorf("told of %q", m.ID)
	}
	c.want(c.waiting("norte"), "oi")
}

func TestStoredComesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	var told []string
	c := setup(t, Options{Stored: func(m Message, r Receipt) { told = append(told, m.ID+" "+r.Status) }})
	c.push(says("norte", 1, "a", "oi"), says("norte", 2, "b", "oi"), says("norte", 1, "a", "oi"))
	c.want(told, "a queued", "b queued", "a duplicate")
}

// TestShutdown: what has gathered is written, what comes later is sent away.
func TestShutdown(t *testing.T) {
	t.Parallel()
	c := prepare(t, pgtest.New(t), Options{BatchMessages: 3, Patience: time.Minute})
	var requests [][]Message
	for n := range 20 {
		requests = append(requests, []Message{says("norte", n, strconv.Itoa(n), "oi")})
	}
	answers := c.gather(requests...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	for _, a := range answers {
		if _, err := a.wait(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Push(t.Context(), requests[0]); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after the end: %v", err)
	}
	if n := len(c.waiting("norte")); n != 20 {
		t.Errorf("%d messages wait", n)
	}
}

// TestShutdownAnswersThoseAside: the end does not wait for ever for a conversation that somebody holds.
func TestShutdownAnswersThoseAside(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{Patience: time.Second})
	c.push(says("norte", 1, "a", "oi"))
	c.hold("SELECT FROM conversations FOR UPDATE")
	answer := make(chan error, 1)
	go func() {
		_, err := c.Push(t.Context(), []Message{says("norte", 1, "b", "oi")})
		answer <- err
	}()
	await(t, "nothing stands aside", func() bool { return c.standsAside(1) })
	c.finish()
	if err := <-answer; !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
