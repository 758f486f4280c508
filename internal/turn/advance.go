package turn

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

var advanceStatement = statement.Named("turn_advance")

// advanceAtOnce is how many steps may share a commit.
const advanceAtOnce = 200

// step is what one turn does next: its reply is there, or its last part is out.
type step struct {
	turn    int64
	attempt int
	// reply and parts are those of a reply, part and providerID of what went out; part is 0 for a reply.
	reply      string
	parts      []string
	part       int
	providerID string

	verdict string
	waits   bool
	err     error
	done    chan struct{}
}

// advance stores the steps of many turns in shared commits. While one is in flight the next ones gather: a lone step waits for nobody,
// and many cost little more than one.
type advance struct {
	store *Store
	// most is how many such commits may be in flight.
	most int

	mu      sync.Mutex
	waiting []*step
	flying  int
}

// take returns when the step is stored, or with an empty verdict when it must be stored by itself: it is a case of its own, or another step
// may have spoilt the commit. An error says that the database is away, or that ctx ended.
func (a *advance) take(ctx context.Context, s *step) error {
	s.done = make(chan struct{})
	a.mu.Lock()
	a.waiting = append(a.waiting, s)
	if a.flying < a.most {
		a.flying++
		go a.run(context.WithoutCancel(ctx))
	}
	a.mu.Unlock()
	select {
	case <-s.done:
		if s.err != nil && postgres.Classify(s.err) != postgres.Away {
			return nil
		}
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run commits until nothing waits.
func (a *advance) run(ctx context.Context) {
	for {
		a.mu.Lock()
		n := min(len(a.waiting), advanceAtOnce)
		if n == 0 {
			a.flying--
			a.mu.Unlock()
			return
		}
		batch := a.waiting[:n:n]
		a.waiting = a.waiting[n:]
		a.mu.Unlock()
		a.commit(ctx, batch)
	}
}

func (a *advance) commit(ctx context.Context, batch []*step) {
	byTurn := make(map[int64]*step, len(batch))
	c := stepColumns{}
	for _, s := range batch {
		// Somebody who lost the turn may come with it as well; what is said of a turn must be said to one of them.
		if byTurn[s.turn] == nil {
			byTurn[s.turn] = s
			c.add(s)
		}
	}
	answers, err := collect(ctx, a.store, advanceStatement, scanAdvanced, c.replied, c.replyAttempt, c.reply, c.partTurn, c.part, c.partText,
		c.sent, c.sentAttempt, c.sentPart, c.providerID, a.store.instance, a.store.lease.Seconds())
	for _, said := range answers {
		byTurn[said.turn].verdict, byTurn[said.turn].waits = said.verdict, said.waits
	}
	for _, s := range batch {
		s.err = err
		close(s.done)
	}
}

// advanced is the answer to one step.
type advanced struct {
	turn    int64
	verdict string
	waits   bool
}

func scanAdvanced(row pgx.CollectableRow) (a advanced, err error) {
	return a, row.Scan(&a.turn, &a.verdict, &a.waits)
}

// stepColumns are the steps as the statement takes them: one array a column.
type stepColumns struct {
	replied, partTurn, sent                   []int64
	replyAttempt, part, sentAttempt, sentPart []int
	reply, partText, providerID               []string
}

func (c *stepColumns) add(s *step) {
	if s.part > 0 {
		c.sent, c.sentAttempt, c.sentPart = append(c.sent, s.turn), append(c.sentAttempt, s.attempt), append(c.sentPart, s.part)
		c.providerID = append(c.providerID, s.providerID)
		return
	}
	c.replied, c.replyAttempt, c.reply = append(c.replied, s.turn), append(c.replyAttempt, s.attempt), append(c.reply, s.reply)
	for i, text := range s.parts {
		c.partTurn, c.part, c.partText = append(c.partTurn, s.turn), append(c.part, i+1), append(c.partText, text)
	}
}
