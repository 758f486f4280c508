package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

var pushStatement = statement.Named("queue_push")

const (
	// A statement that takes longer is given up by the server; the caller repeats.
	statementTimeout = 2 * time.Second
	// How long a batch waits for somebody who holds one of its conversations before it goes on without that one.
	lockTimeout = 300 * time.Millisecond
	// How long the parts of such a batch wait, while it is sought, and those that were put aside.
	shortLock = 30 * time.Millisecond
	// The client's own limit lies behind the server's, so that the server decides.
	callTimeout = statementTimeout + time.Second
	// statementTooLong is the SQLSTATE of a statement that the server gave up: half of the batch may do.
	statementTooLong = "57014"
	// A connection that broke is replaced this often before the callers are sent away.
	reconnects     = 2
	reconnectPause = 50 * time.Millisecond
)

// writer makes one commit after another. While one is in flight the next one gathers: an idle service adds no wait, a busy
// one shares every commit.
type writer struct {
	options Options
	lines   lines
	aside   *aside
	wake    chan struct{}
}

func newWriter(o Options) *writer {
	return &writer{
		options: o,
		lines:   lines{line: map[string][]*request{}, waiting: map[string]int{}},
		aside:   newAside(),
		wake:    make(chan struct{}, 1),
	}
}

func (w *writer) add(r *request) bool {
	if !w.lines.add(r, w.options.ProjectMessages) {
		return false
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return true
}

func (w *writer) run(ctx context.Context) {
	// What is gathered when ctx ends has callers that wait for it: it is written all the same.
	writing := context.WithoutCancel(ctx)
	gathered := make(chan struct{})
	var tried sync.WaitGroup
	tried.Go(func() { w.runAside(writing, gathered) })
	for ctx.Err() == nil {
		w.writeGathered(writing)
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
	w.lines.close()
	w.writeGathered(writing)
	close(gathered)
	tried.Wait()
}

func (w *writer) writeGathered(ctx context.Context) {
	for {
		batch := w.lines.take(w.options.BatchMessages)
		if len(batch) == 0 {
			return
		}
		w.write(ctx, w.free(batch), lockTimeout)
	}
}

// write commits the batch and answers every request in it. A batch that fails because of one of its rows is split until that
// one is alone: one bad message must not cost its neighbours more than a moment. One whose conversation is locked for longer
// than lock is put aside.
func (w *writer) write(ctx context.Context, batch []*request, lock time.Duration) {
	for attempt := 1; ; attempt++ {
		if batch = w.refuseLate(batch); len(batch) == 0 {
			return
		}
		receipts, err := w.push(ctx, batch, lock)
		if err == nil {
			w.answer(batch, receipts)
			return
		}
		locked := postgres.Code(err) == "55P03"
		switch class := postgres.Classify(err); {
		case attempt <= reconnects && repeatable(batch, err):
			// Whatever broke this connection has most likely broken the others of the pool too.
			w.options.Pool.Reset()
			for _, r := range batch {
				r.resent = true
			}
			pause(ctx, time.Duration(attempt)*reconnectPause)
		case len(batch) > 1 && postgres.Code(err) == statementTooLong:
			w.write(ctx, batch[:len(batch)/2], shortLock)
			w.write(ctx, batch[len(batch)/2:], shortLock)
			return
		case class == postgres.Away:
			w.options.Log.Warn().Str("error", postgres.Safe(err)).Int("requests", len(batch)).Msg("messages not stored")
			refuse(batch, ErrUnavailable)
			return
		case len(batch) > 1 && (class != postgres.Again || locked):
			w.write(ctx, batch[:len(batch)/2], shortLock)
			w.write(ctx, batch[len(batch)/2:], shortLock)
			return
		case locked:
			w.putAside(batch[0])
			return
		case class == postgres.Again:
			pause(ctx, time.Duration(attempt)*time.Duration(rand.Int64N(int64(5*time.Millisecond))))
		default:
			w.options.Log.Error().Str("error", postgres.Safe(err)).Msg("request refused by the database")
			refuse(batch, refusal(class, err))
			return
		}
	}
}

// refusal tells the caller whether it is the request that is wrong, or we are: then the message must not get lost.
func refusal(class postgres.Class, err error) error {
	if class == postgres.Broken {
		return ErrUnavailable
	}
	return &InvalidError{Code: postgres.Code(err)}
}

// repeatable tells whether the batch may be sent again over another connection. Where the commit may have happened, only ids
// tell a repetition from a second message.
func repeatable(batch []*request, err error) bool {
	lost, unsent := postgres.Lost(err)
	if !lost || unsent {
		return lost
	}
	for _, r := range batch {
		for i := range r.messages {
			if r.messages[i].ID == "" {
				return false
			}
		}
	}
	return true
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// refuseLate answers those whose time is over before they were sent to the database, and returns the others.
func (w *writer) refuseLate(batch []*request) []*request {
	now := time.Now()
	kept := batch[:0:0]
	for _, r := range batch {
		if now.After(r.deadline) {
			r.answer(nil, ErrUnavailable)
		} else {
			kept = append(kept, r)
		}
	}
	return kept
}

func refuse(batch []*request, err error) {
	for _, r := range batch {
		r.answer(nil, err)
	}
}

func (w *writer) answer(batch []*request, receipts []Receipt) {
	for _, r := range batch {
		mine := receipts[:len(r.messages):len(r.messages)]
		receipts = receipts[len(r.messages):]
		for i, m := range r.messages {
			mine[i].Resent = r.resent && mine[i].Status == Duplicate
			w.options.Stored(m, mine[i])
		}
		r.answer(mine, nil)
	}
}

// push is one round trip and one transaction.
func (w *writer) push(ctx context.Context, batch []*request, lock time.Duration) ([]Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := columnsOf(batch)
	var statuses []string
	var reasons []*string
	round := &pgx.Batch{}
	postgres.Limit(round, statementTimeout, lock)
	round.Queue(pushStatement, c.project, c.id, c.phone, c.address, c.text, c.kind, c.contactName, c.sessionID, c.media, c.sentAt, c.metadata, c.ignored).
		QueryRow(func(row pgx.Row) error { return row.Scan(&statuses, &reasons) })
	conn, err := w.options.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	if err := errors.Join(conn.SendBatch(ctx, round).Close(), postgres.Durable(conn)); err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(statuses))
	for i, s := range statuses {
		receipts[i].Status = s
		if reasons[i] != nil {
			receipts[i].Reason = *reasons[i]
		}
	}
	return receipts, nil
}

// columns are the batch as the statement takes it: one array a column.
type columns struct {
	project, phone, address, text, kind                  []string
	id, contactName, sessionID, media, metadata, ignored []*string
	sentAt                                               []*time.Time
}

func columnsOf(batch []*request) *columns {
	c := &columns{}
	for _, r := range batch {
		for i := range r.messages {
			m := &r.messages[i]
			c.project = append(c.project, m.Project)
			c.id = append(c.id, given(m.ID))
			c.phone = append(c.phone, m.Phone)
			c.address = append(c.address, m.Address)
			c.text = append(c.text, m.Text)
			c.kind = append(c.kind, m.Kind)
			c.contactName = append(c.contactName, given(m.ContactName))
			c.sessionID = append(c.sessionID, given(m.SessionID))
			c.media = append(c.media, given(string(m.Media)))
			c.sentAt = append(c.sentAt, m.SentAt)
			c.metadata = append(c.metadata, given(string(m.Metadata)))
			c.ignored = append(c.ignored, given(m.Ignored))
		}
	}
	return c
}

// given is nil for the empty string, which stands for "not given".
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
