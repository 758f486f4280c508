package race_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/race"
)

func TestMain(m *testing.M) {
	// The test server of a lone test program is supervised until that ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("fila/internal/postgres/cluster.(*Cluster).supervise"))
}

// scene is a database with one project, in which time passes only where a test says so: the window is far longer than any
// test.
type scene struct {
	testing.TB
	pool       *pgxpool.Pool
	url        string
	violations []string
}

const (
	project = "clinic"
	window  = 1000 // seconds
	ana     = "5531999990001"
	bia     = "5531999990002"
	cleo    = "5531999990003"
)

// patience is how long a test waits for what must come: longer than the statement of a session may run.
const patience = 30 * time.Second

// prove runs the scenario on the functions as they are, where nothing may be violated, and on each fault, where something must.
func prove(t *testing.T, scenario func(*scene), faults ...string) {
	t.Helper()
	t.Run("holds", func(t *testing.T) {
		t.Parallel()
		s := setup(t)
		scenario(s)
		for _, v := range s.violations {
			t.Error(v)
		}
	})
	for _, fault := range faults {
		t.Run("catches "+fault, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			if err := race.Fault(t.Context(), s.pool, fault); err != nil {
				t.Fatal(err)
			}
			scenario(s)
			if len(s.violations) == 0 {
				t.Error("the scenario holds in spite of the fault: it proves nothing")
			}
		})
	}
}

func setup(t testing.TB) *scene {
	t.Helper()
	s := &scene{TB: t, url: pgtest.New(t)}
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: s.url, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.pool = pool
	s.exec(`SELECT fila_open_project($1, 'BR', $2, 5000, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`, project, window)
	return s
}

func (s *scene) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), sql, args...); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) count(sql string, args ...any) (n int) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), sql, args...).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// want notes a violation where a count is not what it must be.
func (s *scene) want(what string, want int, sql string, args ...any) {
	s.Helper()
	if got := s.count(sql, args...); got != want {
		s.violated("%s: %d, want %d", what, got, want)
	}
}

func (s *scene) violated(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// pass lets time go by: everything that lies in the database gets older.
func (s *scene) pass(seconds int) {
	s.Helper()
	s.exec(`UPDATE fila_mensagens SET timestamp = timestamp - make_interval(secs => $1)`, seconds)
	s.exec(`UPDATE turns SET lease_until = lease_until - make_interval(secs => $1), next_attempt_at = next_attempt_at - make_interval(secs => $1),
		reply_until = reply_until - make_interval(secs => $1)`, seconds)
	s.exec(`UPDATE hanging_calls SET lease_until = lease_until - make_interval(secs => $1)`, seconds)
}

// conserved is the conservation law: nothing accepted is lost, and nothing is in two places.
func (s *scene) conserved() {
	s.Helper()
	s.want("lost messages", 0, `SELECT count(*) FROM fila_lost`)
	s.want("messages in two places", 0, `
		SELECT count(*) FROM (
			SELECT id_mensagem FROM (
				SELECT id_mensagem FROM fila_mensagens
				UNION ALL
				SELECT m ->> 'id' FROM turns t, jsonb_array_elements(t.messages) m WHERE t.state <> 'superseded'
			) AS place
			GROUP BY id_mensagem HAVING count(*) > 1
		) AS doubled`)
}

// session is one client with a connection of its own.
type session struct {
	*scene
	conn    *pgx.Conn
	tx      pgx.Tx
	running sync.WaitGroup
}

func (s *scene) session() *session {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.url)
	if err != nil {
		s.Fatal(err)
	}
	one := &session{scene: s, conn: conn}
	s.Cleanup(func() {
		one.running.Wait() // the test's context has ended, and what still runs with it
		_ = conn.Close(context.WithoutCancel(s.Context()))
	})
	// A scenario that hangs ends here, and says where.
	if _, err := conn.Exec(s.Context(), `SET statement_timeout = '20s'`); err != nil {
		s.Fatal(err)
	}
	return one
}

// frozen is a session that has run a statement and does not commit: a process that was stopped in the middle.
func (s *scene) frozen(sql string, args ...any) *session {
	s.Helper()
	one := s.session()
	tx, err := one.conn.Begin(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	one.tx = tx
	if _, err := tx.Exec(s.Context(), sql, args...); err != nil {
		s.Fatal(err)
	}
	return one
}

func (s *session) commit() {
	s.Helper()
	if err := s.tx.Commit(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func (s *session) rollback() {
	s.Helper()
	if err := s.tx.Rollback(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// answer is the first column of the first row as text, or the SQLSTATE of the refusal.
type answer string

// flight is a statement under way.
type flight struct {
	*session
	done chan answer
}

// start runs the statement beside the test.
func (s *session) start(sql string, args ...any) *flight {
	f := &flight{session: s, done: make(chan answer, 1)}
	s.running.Go(func() { f.done <- s.ask(sql, args...) })
	return f
}

func (s *session) ask(sql string, args ...any) answer {
	var text *string
	err := s.conn.QueryRow(s.Context(), sql, args...).Scan(&text)
	switch {
	case err != nil && postgres.Code(err) != "":
		return answer(postgres.Code(err))
	case err != nil:
		return answer(err.Error())
	case text == nil:
		return ""
	}
	return answer(*text)
}

// waits comes back when the statement waits for a lock, with true, or when it is over.
func (f *flight) waits() bool {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		if f.count(`SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'`, f.conn.PgConn().PID()) > 0 {
			return true
		}
		select {
		case a := <-f.done:
			f.done <- a
			return false
		case <-ticker.C:
		case <-ctx.Done():
			f.Fatalf("awaited for %s that the statement waits for a lock, or ends", patience)
		}
	}
}

// mustWait notes a violation where the statement went ahead instead of waiting for the frozen session.
func (f *flight) mustWait(what string) {
	f.Helper()
	if !f.waits() {
		f.violated("%s did not wait", what)
	}
}

// result is the statement's answer.
func (f *flight) result() answer {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	select {
	case a := <-f.done:
		return a
	case <-ctx.Done():
		f.Fatalf("awaited for %s that the statement ends", patience)
		return ""
	}
}

// wantAnswer notes a violation where the answer is another one.
func (s *scene) wantAnswer(what string, got, want answer) {
	s.Helper()
	if got != want {
		s.violated("%s answered %q, want %q", what, got, want)
	}
}
