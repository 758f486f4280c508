package queue

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"fila/internal/postgres"
)

// ErrUnavailable: the messages could not be committed in time, and nothing of them was stored. They may be repeated.
var ErrUnavailable = errors.New("the message could not be stored in time; send it again")

// InvalidError says that the database will never take the messages of this request.
type InvalidError struct{ Code string }

// Error names the SQLSTATE only: the database's own words may quote the message.
func (e *InvalidError) Error() string {
	return "the database refuses a value of this request (SQLSTATE " + e.Code + ")"
}

// Options of a Queue; zero values take the defaults given here.
type Options struct {
	Pool *postgres.Pool
	Log  zerolog.Logger
	// Stored is told of every message after its commit, in the order of the request. It must not block.
	Stored func(Message, Receipt)
	// Writers is how many commits may be in flight at once; postgres.Committers. A conversation always uses the same one.
	Writers int
	// BatchMessages is how many messages may share a commit; 1000.
	BatchMessages int
	// ProjectMessages is how many messages of one project may wait for a commit; 5000. More are refused, so that a flood
	// of one clinic costs the others nothing.
	ProjectMessages int
	// Patience is how long a request may wait for its commit; 3 s.
	Patience time.Duration
}

// Queue writes messages in shared commits.
type Queue struct {
	options Options
	seed    maphash.Seed
	writers []*writer
}

// New makes a queue. Nothing is written before Run.
func New(o Options) *Queue {
	if o.Writers == 0 {
		o.Writers = postgres.Committers()
	}
	if o.BatchMessages == 0 {
		o.BatchMessages = 1000
	}
	if o.ProjectMessages == 0 {
		o.ProjectMessages = 5000
	}
	if o.Patience == 0 {
		o.Patience = 3 * time.Second
	}
	if o.Stored == nil {
		o.Stored = func(Message, Receipt) {}
	}
	q := &Queue{options: o, seed: maphash.MakeSeed()}
	for range o.Writers {
		q.writers = append(q.writers, newWriter(o))
	}
	return q
}

// Run writes until ctx ends, then what is already gathered, and returns.
func (q *Queue) Run(ctx context.Context) error {
	group := errgroup.Group{}
	for _, w := range q.writers {
		group.Go(func() error { w.run(ctx); return nil })
	}
	return group.Wait()
}

// Push stores the messages of one project, all or none, and returns a receipt for each once they are committed. It returns
// ErrUnavailable, an *InvalidError, or the error of ctx, which says nothing about the messages.
func (q *Queue) Push(ctx context.Context, messages []Message) ([]Receipt, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	r := &request{messages: messages, bytes: bytesOf(messages), deadline: time.Now().Add(q.options.Patience), done: make(chan struct{})}
	if !q.writerOf(messages[0]).add(r) {
		return nil, ErrUnavailable
	}
	select {
	case <-r.done:
		return r.receipts, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func bytesOf(messages []Message) (n int) {
	for i := range messages {
		n += len(messages[i].Text) + len(messages[i].Metadata) + len(messages[i].Media)
	}
	return n
}

func (q *Queue) writerOf(m Message) *writer {
	var h maphash.Hash
	h.SetSeed(q.seed)
	_, _ = h.WriteString(m.Project)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(m.Phone)
	return q.writers[h.Sum64()%uint64(len(q.writers))]
}

// batchBytes is how much text may share a commit: large messages must not make one too slow for all that are in it.
const batchBytes = 2 << 20

// request is one call of Push on its way through a commit.
type request struct {
	messages []Message
	bytes    int
	deadline time.Time
	// resent: the connection broke while the request was on it, and it was sent again.
	resent   bool
	receipts []Receipt
	err      error
	done     chan struct{}
}

func (r *request) answer(receipts []Receipt, err error) {
	r.receipts, r.err = receipts, err
	close(r.done)
}

// lines hold what waits for a commit, a line a project, and serve the projects in turn.
type lines struct {
	mu      sync.Mutex
	line    map[string][]*request
	waiting map[string]int
	turn    []string
	closed  bool
}

// add puts the request into its project's line, unless that is full.
func (l *lines) add(r *request, limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	project := r.messages[0].Project
	if l.closed || l.waiting[project] > 0 && l.waiting[project]+len(r.messages) > limit {
		return false
	}
	if len(l.line[project]) == 0 {
		l.turn = append(l.turn, project)
	}
	l.line[project] = append(l.line[project], r)
	l.waiting[project] += len(r.messages)
	return true
}

// take removes the next batch: one request a project in turn, until that would be more than limit messages.
func (l *lines) take(limit int) []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var batch []*request
	for size, bytes := 0, 0; len(l.turn) > 0; {
		project := l.turn[0]
		r := l.line[project][0]
		size, bytes = size+len(r.messages), bytes+r.bytes
		if len(batch) > 0 && (size > limit || bytes > batchBytes) {
			break
		}
		batch = append(batch, r)
		l.waiting[project] -= len(r.messages)
		l.turn = l.turn[1:]
		if l.line[project] = l.line[project][1:]; len(l.line[project]) > 0 {
			l.turn = append(l.turn, project)
		} else {
			delete(l.line, project)
			delete(l.waiting, project)
		}
	}
	return batch
}

// close refuses everything from now on; what waits may still be taken.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
