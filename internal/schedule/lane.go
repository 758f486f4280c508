package schedule

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"fila/internal/postgres"
	"fila/internal/turn"
)

const (
	// drainAtOnce is how many conversations share one drain: each takes an advisory lock for its moment.
	drainAtOnce = 200
	// busyPause is how long a conversation is left alone that somebody else was deciding about.
	busyPause = 25 * time.Millisecond
	// awayPause is how long a project is left alone when the database was away.
	awayPause = 500 * time.Millisecond
)

// lane is one project: what of it is due, and the slots its turns run in. A burst stays in the queue as long as no slot is
// free, so that overload makes fewer and larger turns instead of a backlog of small ones.
type lane struct {
	scheduler *Scheduler
	name      string

	mu      sync.Mutex
	project Project
	running int
	// ready are the conversations to look at, oldest first; each stands here once.
	ready  []string
	queued map[string]bool
	// asked are those that a drain was asked for since the sweep last began to look; true while it is under way.
	asked   map[string]bool
	claim   bool
	signals chan struct{}
}

func newLane(s *Scheduler, p Project) *lane {
	return &lane{scheduler: s, name: p.Name, project: p, queued: map[string]bool{}, asked: map[string]bool{}, signals: make(chan struct{}, 1)}
}

func (l *lane) settings() Project {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.project
}

func (l *lane) configure(p Project) {
	l.mu.Lock()
	l.project = p
	l.mu.Unlock()
	l.signal()
}

// look puts conversations in line; the database says what is to be done about them.
func (l *lane) look(phones ...string) {
	l.mu.Lock()
	for _, phone := range phones {
		if !l.queued[phone] {
			l.queued[phone] = true
			l.ready = append(l.ready, phone)
		}
	}
	l.mu.Unlock()
	l.signal()
}

func (l *lane) has(phone string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued[phone]
}

// beginSweep forgets the drains that are over. What a sweep finds that wasAsked after its beginning is no news.
func (l *lane) beginSweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.asked, func(_ string, underWay bool) bool { return !underWay })
}

func (l *lane) wasAsked(phone string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, asked := l.asked[phone]
	return asked
}

func (l *lane) answered(phones []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, phone := range phones {
		l.asked[phone] = false
	}
}

// wantClaim says that turns of the project may be waiting for somebody.
func (l *lane) wantClaim() {
	l.mu.Lock()
	l.claim = true
	l.mu.Unlock()
	l.signal()
}

func (l *lane) signal() {
	select {
	case l.signals <- struct{}{}:
	default:
	}
}

// run works until ctx ends: begun turns go on under work.
func (l *lane) run(ctx, work context.Context) {
	for {
		select {
		case <-l.signals:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil && l.step(ctx, work) {
		}
	}
}

// step does one round trip if there is something to do and a slot for it, and says whether it did. Turns that are there
// already go before new ones.
func (l *lane) step(ctx, work context.Context) bool {
	if slots := l.takeClaim(); slots > 0 {
		return l.claimTurns(ctx, work, slots)
	}
	if phones := l.takeReady(); len(phones) > 0 {
		return l.drain(ctx, work, phones)
	}
	return false
}

func (l *lane) takeClaim() (slots int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.project.Concurrency - l.running
	if !l.claim || free <= 0 {
		return 0
	}
	l.claim = false
	return free
}

func (l *lane) takeReady() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.project.Concurrency-l.running, len(l.ready), drainAtOnce)
	if n <= 0 {
		return nil
	}
	phones := append([]string(nil), l.ready[:n]...)
	if l.ready = l.ready[n:]; len(l.ready) == 0 {
		l.ready = nil
	}
	for _, phone := range phones {
		delete(l.queued, phone)
		l.asked[phone] = true
	}
	return phones
}

// claimTurns and drain see their call through when ctx ends: a turn that was leased and never heard of would wait for the end
// of its lease.
func (l *lane) claimTurns(ctx, work context.Context, slots int) bool {
	leased := time.Now()
	claimed, err := l.scheduler.store.Claim(context.WithoutCancel(ctx), l.name, slots)
	if err != nil {
		l.wantClaim()
		l.rest(ctx, err)
		return true
	}
	if len(claimed) == slots {
		l.wantClaim()
	}
	for _, w := range claimed {
		l.begin(work, w, leased)
	}
	return true
}

func (l *lane) drain(ctx, work context.Context, phones []string) bool {
	leased := time.Now()
	drained, err := l.scheduler.store.Drain(context.WithoutCancel(ctx), l.name, phones)
	switch {
	case err != nil && postgres.Classify(err) == postgres.Away:
		l.look(phones...)
		l.rest(ctx, err)
	case err != nil:
		// One of them may be what is wrong: they come up again apart from each other.
		l.scheduler.away(ctx, err)
		for _, phone := range phones {
			l.lookIn(phone, jitter(awayPause))
		}
	}
	for _, d := range drained {
		l.judge(ctx, work, d, leased)
	}
	l.answered(phones)
	return true
}

// rest leaves the database alone for a while; whatever falls due meanwhile gathers.
func (l *lane) rest(ctx context.Context, err error) {
	l.scheduler.away(ctx, err)
	select {
	case <-time.After(jitter(awayPause)):
	case <-ctx.Done():
	}
}

// judge does what the drain's verdict asks for. What nothing is done about here has an event of its own: the end of the open
// turn, a resume, a message.
func (l *lane) judge(ctx, work context.Context, d turn.Drained, leased time.Time) {
	switch d.Verdict {
	case turn.Begun:
		l.begin(work, d.Work, leased)
	case turn.Early, turn.Human, turn.HangingUp:
		now := time.Now()
		l.scheduler.timers.at(conversation{l.name, d.Phone}, now.Add(d.Wait), now.Add(-d.FirstAgo), d.Waiting)
	case turn.Busy:
		l.lookIn(d.Phone, jitter(busyPause))
	case turn.Interrupt:
		l.interrupt(ctx, d)
	}
}

// interrupt stops the open turn, wherever it runs; its end brings the conversation up again.
func (l *lane) interrupt(ctx context.Context, d turn.Drained) {
	if l.scheduler.interrupt(d.Turn) {
		return
	}
	verdict, err := l.scheduler.store.Interrupt(ctx, d.Turn)
	switch {
	case err != nil:
		l.scheduler.away(ctx, err)
		l.lookIn(d.Phone, jitter(awayPause))
	case verdict == "asked":
		// Its instance looks again once it has hung up; should that die, the claim of its turn does.
	default:
		l.look(d.Phone)
	}
}

// lookIn asks again a little later, where the database said nothing about the burst.
func (l *lane) lookIn(phone string, wait time.Duration) {
	now := time.Now()
	l.scheduler.timers.at(conversation{l.name, phone}, now.Add(wait), now, 0)
}

// begin runs the turn in a slot of its own, and looks at the conversation again after it if anything may wait there.
func (l *lane) begin(work context.Context, w turn.Work, leased time.Time) {
	l.mu.Lock()
	l.running++
	project := l.project
	l.mu.Unlock()
	l.scheduler.turns.Add(1)
	go func() {
		defer l.scheduler.turns.Done()
		waits := l.scheduler.runTurn(work, project.Turn, w, leased)
		l.mu.Lock()
		l.running--
		l.mu.Unlock()
		if waits {
			l.look(w.Phone)
		} else {
			// Others may have waited for the slot.
			l.signal()
		}
	}()
}

// jitter spreads what failed together: half to three halves of d.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)))
}
