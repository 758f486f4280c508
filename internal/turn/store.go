package turn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

var (
	drainStatement        = statement.Named("turn_drain")
	claimStatement        = statement.Named("turn_claim")
	renewStatement        = statement.Named("turn_renew")
	handBackStatement     = statement.Named("turn_hand_back")
	hungUpStatement       = statement.Named("turn_hung_up")
	replyStatement        = statement.Named("turn_reply")
	awaitReplyStatement   = statement.Named("turn_await_reply")
	interruptStatement    = statement.Named("turn_interrupt")
	sendStatement         = statement.Named("turn_send")
	sentStatement         = statement.Named("turn_sent")
	failStatement         = statement.Named("turn_fail")
	fallbackStatement     = statement.Named("turn_fallback")
	fallbackSentStatement = statement.Named("turn_fallback_sent")
	partsStatement        = statement.Named("turn_parts")
	adoptStatement        = statement.Named("queue_adopt")
	waitingStatement      = statement.Named("queue_waiting")
	sweepStatement        = statement.Named("sweep")
)

// callTimeout bounds every statement here; they all take milliseconds.
const callTimeout = 10 * time.Second

// Store is the database's side of the turns: one method a statement.
type Store struct {
	pool     *postgres.Pool
	instance string
	lease    time.Duration
	advance  advance
}

// NewStore makes a store that leases turns in the name of the instance, for the given time.
func NewStore(pool *postgres.Pool, instance string, lease time.Duration) *Store {
	l := &Store{pool: pool, instance: instance, lease: lease}
	l.advance.store, l.advance.most = l, postgres.Committers()
	return l
}

// Drain turns the bursts of these conversations that are due into turns leased by this instance, and says of each what it
// found.
func (l *Store) Drain(ctx context.Context, project string, phones []string) ([]Drained, error) {
	return collect(ctx, l, drainStatement, scanDrained(project), project, phones, l.instance, l.lease.Seconds())
}

func scanDrained(project string) pgx.RowToFunc[Drained] {
	return func(row pgx.CollectableRow) (Drained, error) {
		var d Drained
		var wait, first, late *float64
		var id *int64
		var firedBy, address, session, text *string
		var count *int
		w := &d.Work
		err := row.Scan(&d.Phone, &d.Verdict, &wait, &first, &d.Waiting, &id, &firedBy, &address, &w.ContactName, &session, (*[]byte)(&w.Messages), &text,
			&w.Superseded, &count, &late)
		d.Wait, d.FirstAgo, d.Turn = seconds(wait), seconds(first), value(id)
		w.ID, w.Project, w.Phone, w.Attempt, w.State, w.Stage = d.Turn, project, d.Phone, 1, stateRunning, stageAgent
		w.FiredBy, w.Address, w.SessionID, w.Text = value(firedBy), value(address), value(session), value(text)
		w.Count, w.Late = value(count), seconds(late)
		return d, err
	}
}

// Claim leases up to limit turns of the project that nobody works on and that may go on now. Those it had to discard, since
// a person has their conversation, are among them, in state discarded.
func (l *Store) Claim(ctx context.Context, project string, limit int) ([]Work, error) {
	return collect(ctx, l, claimStatement, scanClaimed, []string{project}, []int{limit}, l.instance, l.lease.Seconds())
}

func scanClaimed(row pgx.CollectableRow) (Work, error) {
	var w Work
	var reconciling *float64
	var doubtful *int
	err := row.Scan(&w.ID, &w.Project, &w.Phone, &w.State, &w.Stage, &w.Why, &w.Attempt, &w.FiredBy, &w.Address, &w.ContactName, &w.SessionID,
		(*[]byte)(&w.Messages), &w.Text, &w.Superseded, &w.Count, &w.AgentFailures, &w.DeliveryFailures, &w.Crashes, &reconciling, &doubtful)
	w.Reconciling, w.Doubtful = seconds(reconciling), value(doubtful)
	return w, err
}

// renewal is the answer to one sign of life.
type renewal struct {
	turn        int64
	interrupted bool
	// renewed is false where somebody had the row locked: the turn is still ours, and its lease as old as before.
	renewed bool
}

func (l *Store) renew(ctx context.Context, turns []int64, attempts []int) ([]renewal, error) {
	return collect(ctx, l, renewStatement, func(row pgx.CollectableRow) (r renewal, err error) {
		return r, row.Scan(&r.turn, &r.interrupted, &r.renewed)
	}, turns, attempts, l.lease.Seconds())
}

func (l *Store) handBack(ctx context.Context, turns []int64, attempts []int) error {
	return l.exec(ctx, handBackStatement, turns, attempts)
}

func (l *Store) hungUp(ctx context.Context, w *Work) error {
	return l.exec(ctx, hungUpStatement, w.ID, w.Attempt)
}

// Reply stores an answer and passes it through the gate. With attempt nil it is the callback of an agent that named none.
// The verdict is send, done, held, discarded, superseded, repeated, stale or absent.
func (l *Store) Reply(ctx context.Context, project string, turn int64, attempt *int, r Reply) (verdict string, err error) {
	parts := r.Parts
	if parts == nil {
		parts = []string{}
	}
	instance := &l.instance
	if r.CalledBack {
		instance = nil
	}
	return verdict, l.row(ctx, replyStatement, []any{&verdict}, project, turn, attempt, r.Text, parts, r.Handoff, r.Send, instance, l.lease.Seconds())
}

// replied is Reply for the answer to a call of ours, in company where that may be.
func (l *Store) replied(ctx context.Context, w *Work, r Reply) (verdict string, err error) {
	if r.Send && len(r.Parts) > 0 && !r.Handoff {
		s := &step{turn: w.ID, attempt: w.Attempt, reply: r.Text, parts: r.Parts}
		if err := l.advance.take(ctx, s); err != nil || s.verdict != "" {
			return s.verdict, err
		}
	}
	return l.Reply(ctx, w.Project, w.ID, &w.Attempt, r)
}

// ended stores that the last part went out, in company where that may be, and tells whether anything may wait behind the turn.
func (l *Store) ended(ctx context.Context, w *Work, part int, providerID string) (verdict string, waits bool, err error) {
	s := &step{turn: w.ID, attempt: w.Attempt, part: part, providerID: providerID}
	if err := l.advance.take(ctx, s); err != nil || s.verdict != "" {
		return s.verdict, s.waits, err
	}
	verdict, err = l.sent(ctx, w, part, providerID, false)
	return verdict, true, err
}

// Reply is an agent's answer on its way into the ledger.
type Reply struct {
	// Text is the whole reply, Parts what of it goes out; none where the project keeps its replies.
	Text  string
	Parts []string
	// Handoff gives the conversation to a person afterwards.
	Handoff bool
	// Send says that the caller sends the first part at once, if the gate lets it.
	Send bool
	// CalledBack says that the agent brought it in a call of its own, beside which one of ours may still be under way.
	CalledBack bool
}

func (l *Store) awaitReply(ctx context.Context, w *Work, timeout time.Duration) (verdict string, err error) {
	return verdict, l.row(ctx, awaitReplyStatement, []any{&verdict}, w.ID, w.Attempt, timeout.Seconds())
}

// Interrupt asks for the turn to be superseded now, by whoever holds it. The verdict is superseded, asked or stale.
func (l *Store) Interrupt(ctx context.Context, turn int64) (verdict string, err error) {
	return verdict, l.row(ctx, interruptStatement, []any{&verdict}, turn, nil)
}

// interrupted gives back a turn whose call has been hung up on. The verdict is superseded, discarded, retry or stale.
func (l *Store) interrupted(ctx context.Context, w *Work) (verdict string, err error) {
	return verdict, l.row(ctx, interruptStatement, []any{&verdict}, w.ID, w.Attempt)
}

func (l *Store) send(ctx context.Context, w *Work, part int) (verdict string, err error) {
	return verdict, l.row(ctx, sendStatement, []any{&verdict}, w.ID, w.Attempt, part)
}

func (l *Store) sent(ctx context.Context, w *Work, part int, providerID string, goOn bool) (verdict string, err error) {
	var id *string
	if providerID != "" {
		id = &providerID
	}
	return verdict, l.row(ctx, sentStatement, []any{&verdict}, w.ID, w.Attempt, part, id, goOn)
}

// failure is one thing that did not work, and what the policy makes of it.
type failure struct {
	stage   string
	part    *int
	fate    string
	reason  string
	counted bool
	delay   time.Duration
}

func (l *Store) fail(ctx context.Context, w *Work, f failure) (state string, err error) {
	return state, l.row(ctx, failStatement, []any{&state}, w.ID, w.Attempt, f.stage, f.part, f.fate, f.reason, f.counted, f.delay.Seconds())
}

func (l *Store) fallback(ctx context.Context, turn int64) (text string, err error) {
	texts, err := collect(ctx, l, fallbackStatement, pgx.RowTo[string], turn)
	if len(texts) > 0 {
		text = texts[0]
	}
	return text, err
}

func (l *Store) fallbackSent(ctx context.Context, turn int64, state, providerID string) error {
	return l.exec(ctx, fallbackSentStatement, turn, state, providerID)
}

// part is one row of a reply.
type part struct {
	Number int
	Text   string
	State  string
}

func (l *Store) parts(ctx context.Context, turn int64) ([]part, error) {
	return collect(ctx, l, partsStatement, pgx.RowToStructByPos[part], turn)
}

// Adopt takes in what other programs inserted into the project's table, and returns the phones that have work now.
func (l *Store) Adopt(ctx context.Context, project string) ([]string, error) {
	return collect(ctx, l, adoptStatement, pgx.RowTo[string], project)
}

// Waiting is a conversation that waits, as the queue alone shows it.
type Waiting struct {
	Project, Phone string
	// DueIn is negative for a burst that is overdue.
	DueIn, FirstAgo time.Duration
	Messages        int
}

// EachWaiting calls f for every conversation of the projects that has messages waiting.
func (l *Store) EachWaiting(ctx context.Context, projects []string, f func(Waiting)) error {
	rows, err := l.pool.Query(ctx, waitingStatement, projects)
	if err != nil {
		return fmt.Errorf("read what waits: %w", err)
	}
	var w Waiting
	var dueIn, firstAgo float64
	_, err = pgx.ForEachRow(rows, []any{&w.Project, &w.Phone, &dueIn, &firstAgo, &w.Messages}, func() error {
		w.DueIn, w.FirstAgo = seconds(&dueIn), seconds(&firstAgo)
		f(w)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what waits: %w", err)
	}
	return nil
}

// Swept is one finding of a sweep.
type Swept struct {
	// Kind is wakeup, foreign, turn, overdue or page; the last one says where the project's next page begins.
	Kind           string
	Project, Phone string
	Rows           int
}

// Sweep looks for work that no timer stands for. cursors holds, for each project, the phone after which its page of the
// queue begins.
func (l *Store) Sweep(ctx context.Context, projects, cursors []string, page int) ([]Swept, error) {
	return collect(ctx, l, sweepStatement, pgx.RowToStructByPos[Swept], projects, cursors, page)
}

// lockNotAvailable is the SQLSTATE of a lock_timeout: trying again at once would only wait again.
const lockNotAvailable = "55P03"

// retries is how often a statement that lost a race is run again at once.
const retries = 5

func collect[T any](ctx context.Context, l *Store, statement string, scan pgx.RowToFunc[T], args ...any) ([]T, error) {
	var found []T
	err := again(ctx, func(ctx context.Context) error {
		rows, err := l.pool.Query(ctx, statement, args...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, err
}

func (l *Store) row(ctx context.Context, statement string, into []any, args ...any) error {
	return again(ctx, func(ctx context.Context) error { return l.pool.QueryRow(ctx, statement, args...).Scan(into...) })
}

func (l *Store) exec(ctx context.Context, statement string, args ...any) error {
	return again(ctx, func(ctx context.Context) error {
		_, err := l.pool.Exec(ctx, statement, args...)
		return err
	})
}

// again runs one statement, and runs it again where it lost a race and left nothing behind.
func again(ctx context.Context, run func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err := run(bounded)
		cancel()
		if err == nil || attempt == retries || postgres.Classify(err) != postgres.Again || postgres.Code(err) == lockNotAvailable {
			return err
		}
		pause(ctx, time.Duration(attempt)*time.Duration(rand.Int64N(int64(5*time.Millisecond))))
	}
}

// pause waits, or returns early with false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func seconds(s *float64) time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(*s * float64(time.Second))
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
