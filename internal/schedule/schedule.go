// Package schedule brings conversations up when they fall due, and turns when they may go on.
//
// Its timers are hints kept in memory; the database decides, and says how long is left when a hint came too early. A sweep
// finds what has no timer here: bursts of an instance that died, rows that other programs inserted, what somebody did in
// psql. Nothing else asks the database without a reason.
package schedule

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"fila/internal/postgres"
	"fila/internal/turn"
)

// Window is when a burst of a project is over.
type Window struct {
	// Debounce is the quiet time; 0 answers every message at once.
	Debounce time.Duration
	// MaxWait is the ceiling since the burst's first message.
	MaxWait time.Duration
	// MaxMessages closes a burst that is this long.
	MaxMessages int
}

// Project is one project as the scheduler sees it.
type Project struct {
	Name string
	Window
	// Concurrency is how many turns of the project this instance runs at once.
	Concurrency int
	// Turn is how its turns are run.
	Turn *turn.Project
}

// Store is what the scheduler asks of the database; *turn.Store is one.
type Store interface {
	Drain(ctx context.Context, project string, phones []string) ([]turn.Drained, error)
	Claim(ctx context.Context, project string, limit int) ([]turn.Work, error)
	Interrupt(ctx context.Context, turn int64) (string, error)
	Adopt(ctx context.Context, project string) ([]string, error)
	Sweep(ctx context.Context, projects, cursors []string, page int) ([]turn.Swept, error)
	EachWaiting(ctx context.Context, projects []string, f func(turn.Waiting)) error
}

// Options of a Scheduler.
type Options struct {
	Store Store
	// Run runs one turn until it ends or waits; it holds a slot for as long. It tells whether anything may wait in the conversation then.
	Run func(ctx context.Context, p *turn.Project, w turn.Work, leased time.Time) bool
	// Interrupt stops the turn if this process runs it, and says whether it does.
	Interrupt func(turn int64) bool
	// Sweep is the pause between two looks at what has no timer.
	Sweep time.Duration
	Log   zerolog.Logger
}

// Scheduler decides when a conversation is looked at. It is safe for concurrent use.
type Scheduler struct {
	store     Store
	runTurn   func(ctx context.Context, p *turn.Project, w turn.Work, leased time.Time) bool
	interrupt func(turn int64) bool
	sweep     time.Duration
	log       zerolog.Logger
	timers    *timers
	// turns counts those that run; Run waits for them.
	turns sync.WaitGroup
	// rebuild asks for the timers to be made anew from the queue.
	rebuild chan struct{}

	mu      sync.Mutex
	lanes   map[string]*lane
	start   func(*lane)
	wasAway bool
}

// New makes a scheduler without projects.
func New(o Options) *Scheduler {
	return &Scheduler{
		store: o.Store, runTurn: o.Run, interrupt: o.Interrupt, sweep: o.Sweep, log: o.Log,
		timers: newTimers(), rebuild: make(chan struct{}, 1), lanes: map[string]*lane{},
	}
}

// Configure sets the projects that this instance serves. One that is not among them any more keeps its old settings until
// what it has accepted is answered. Bursts that wait are judged anew by the new windows.
func (s *Scheduler) Configure(projects []Project) {
	s.mu.Lock()
	for _, p := range projects {
		if l, known := s.lanes[p.Name]; known {
			l.configure(p)
			continue
		}
		l := newLane(s, p)
		s.lanes[p.Name] = l
		if s.start != nil {
			s.start(l)
		}
	}
	s.mu.Unlock()
	select {
	case s.rebuild <- struct{}{}:
	default:
	}
}

// Arrived tells of a message that has just been committed.
func (s *Scheduler) Arrived(project, phone string) {
	if l := s.lane(project); l != nil {
		s.timers.arrived(conversation{project, phone}, l.settings().Window, time.Now())
	}
}

// Watch tells of a conversation in which something may wait that nothing was heard of: the database says what, and when it is due.
func (s *Scheduler) Watch(project, phone string) {
	if l := s.lane(project); l != nil && !s.watches(l, phone) {
		l.look(phone)
	}
}

// watches tells whether the conversation comes up anyway.
func (s *Scheduler) watches(l *lane, phone string) bool {
	return s.timers.has(conversation{l.name, phone}) || l.has(phone)
}

// Wake brings the conversation up at once, and any turn of its project that may go on.
func (s *Scheduler) Wake(project, phone string) {
	if l := s.lane(project); l != nil {
		l.wantClaim()
		l.look(phone)
	}
}

// Retry brings up turns of the project that may go on, after the delay.
func (s *Scheduler) Retry(project string, delay time.Duration) {
	if l := s.lane(project); l != nil {
		time.AfterFunc(delay, l.wantClaim)
	}
}

func (s *Scheduler) lane(project string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes[project]
}

// Run works until ctx ends, and returns when the turns that run have ended too; they run under work.
func (s *Scheduler) Run(ctx, work context.Context) error {
	group := errgroup.Group{}
	run := func(l *lane) { group.Go(func() error { l.run(ctx, work); return nil }) }
	s.mu.Lock()
	for _, l := range s.lanes {
		run(l)
	}
	s.start = run
	s.mu.Unlock()
	group.Go(func() error { s.timers.run(ctx, s.fall); return nil })
	group.Go(func() error { s.runSweep(ctx); return nil })
	group.Go(func() error { s.runRebuild(ctx); return nil })
	<-ctx.Done()
	s.mu.Lock()
	s.start = nil
	s.mu.Unlock()
	err := group.Wait()
	s.turns.Wait()
	return err
}

// fall hands over what has fallen due, a project at a time so that a drain finds company.
func (s *Scheduler) fall(fallen []conversation) {
	byProject := map[string][]string{}
	for _, c := range fallen {
		byProject[c.project] = append(byProject[c.project], c.phone)
	}
	for project, phones := range byProject {
		if l := s.lane(project); l != nil {
			l.look(phones...)
		}
	}
}

// away logs an error of the store, once until it works again.
func (s *Scheduler) away(ctx context.Context, err error) {
	s.mu.Lock()
	first := !s.wasAway
	s.wasAway = true
	s.mu.Unlock()
	if first && ctx.Err() == nil {
		s.log.Error().Str("error", postgres.Safe(err)).Msg("scheduler cannot reach its queue, keeps trying")
	}
}

func (s *Scheduler) back() {
	s.mu.Lock()
	again := s.wasAway
	s.wasAway = false
	s.mu.Unlock()
	if again {
		s.log.Info().Msg("scheduler reaches its queue again")
	}
}
