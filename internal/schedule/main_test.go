package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"fila/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errAway is what a database that cannot be reached answers.
var errAway = fmt.Errorf("drain: %w", context.DeadlineExceeded)

// world is the database of a test, the turns that run, and a record of what it was asked and when. What a test leaves
// unset finds nothing. Its functions are called one at a time.
type world struct {
	*testing.T
	*Scheduler
	drains    func(phone string) turn.Drained
	fails     func() error
	claims    func(limit int) []turn.Work
	interrupt func(id int64) string
	ours      func(id int64) bool
	adopts    []string
	sweeps    func(projects, cursors []string) []turn.Swept
	waits     []turn.Waiting
	// runs is what a turn does until it is over.
	runs func(w turn.Work)
	// empty says that every turn finds nothing behind it at its end.
	empty bool
	// takes is how long drains and sweeps look, at what was there when they began.
	takes time.Duration

	began time.Time
	log   bytes.Buffer
	stop  context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	said []string
}

// play runs the script against a scheduler of these projects on a clock that jumps, and ends the scheduler after it.
func play(t *testing.T, w *world, script func(), projects ...Project) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w.T, w.began, w.ended = t, time.Now(), make(chan struct{})
		w.Scheduler = New(Options{
			Store: w, Run: w.run, Interrupt: func(id int64) bool { return w.ours != nil && w.ours(id) },
			Sweep: 10 * time.Minute, Log: zerolog.New(&w.log),
		})
		w.Configure(projects)
		var ctx context.Context
		ctx, w.stop = context.WithCancel(t.Context())
		go func() {
			defer close(w.ended)
			if err := w.Scheduler.Run(ctx, t.Context()); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		w.heard() // the look around at the start
		script()
		w.stop()
		<-w.ended
	})
}

// project has room for everything unless a test says otherwise.
func project(name string, window time.Duration) Project {
	return Project{Name: name, Window: Window{Debounce: window, MaxWait: 5 * window, MaxMessages: 100}, Concurrency: 50, Turn: &turn.Project{Name: name}}
}

func (w *world) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf("%v ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

// last is what was asked for just now.
func (w *world) last() string {
	if len(w.said) == 0 {
		return ""
	}
	return w.said[len(w.said)-1]
}

// heard returns what happened since it was last asked.
func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said
	w.said = nil
	return said
}

// expect lets everything come to rest and compares what happened.
func (w *world) expect(want ...string) {
	w.Helper()
	synctest.Wait()
	if got := w.heard(); !slices.Equal(got, want) {
		w.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// set changes the world while the scheduler runs.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// pass lets the bubble's time go by, which costs none.
func pass(d time.Duration) { <-time.After(d) }

// until lets the time pass until that long after the beginning.
func (w *world) until(d time.Duration) { pass(d - time.Since(w.began)); synctest.Wait() }

func (w *world) fail() error {
	if w.fails == nil {
		return nil
	}
	return w.fails()
}

// Drain is Store's.
func (w *world) Drain(_ context.Context, project string, phones []string) (found []turn.Drained, err error) {
	defer pass(w.takes)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say("drain %s %s", project, strings.Join(phones, ","))
	if err := w.fail(); err != nil {
		return nil, err
	}
	for _, phone := range phones {
		d := turn.Drained{Verdict: turn.Empty}
		if w.drains != nil {
			d = w.drains(phone)
		}
		d.Phone = phone
		if d.Verdict == turn.Begun {
			d.Work.Project, d.Work.Phone = project, phone
		}
		found = append(found, d)
	}
	return found, nil
}

// Claim is Store's.
func (w *world) Claim(_ context.Context, project string, limit int) ([]turn.Work, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say("claim %s %d", project, limit)
	if err := w.fail(); err != nil || w.claims == nil {
		return nil, err
	}
	return w.claims(limit), nil
}

// Interrupt is Store's.
func (w *world) Interrupt(_ context.Context, id int64) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say("interrupt %d", id)
	if err := w.fail(); err != nil {
		return "", err
	}
	return w.interrupt(id), nil
}

// Adopt is Store's.
func (w *world) Adopt(_ context.Context, project string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say("adopt %s", project)
	return w.adopts, w.fail()
}

// Sweep is Store's.
func (w *world) Sweep(_ context.Context, projects, cursors []string, page int) ([]turn.Swept, error) {
	defer pass(w.takes)
	w.mu.Lock()
	defer w.mu.Unlock()
	if page != pageRows || len(projects) != len(cursors) {
		return nil, errors.New("a sweep that no database understands")
	}
	if err := w.fail(); err != nil || w.sweeps == nil {
		return nil, err
	}
	return w.sweeps(projects, cursors), nil
}

// EachWaiting is Store's.
func (w *world) EachWaiting(_ context.Context, projects []string, f func(turn.Waiting)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(projects)
	w.say("read %s", strings.Join(projects, ","))
	if err := w.fail(); err != nil {
		return err
	}
	for _, waiting := range w.waits {
		f(waiting)
	}
	return nil
}

func (w *world) run(_ context.Context, p *turn.Project, work turn.Work, _ time.Time) bool {
	w.mu.Lock()
	w.say("run %s %s", p.Name, work.Phone)
	runs, empty := w.runs, w.empty
	w.mu.Unlock()
	if runs != nil {
		runs(work)
	}
	return !empty
}

// begun lets every drain begin a turn.
func begun(string) turn.Drained { return turn.Drained{Verdict: turn.Begun} }

// once lets the first drain of each conversation begin a turn; after it nothing waits.
func once() func(string) turn.Drained {
	seen := map[string]bool{}
	return func(phone string) turn.Drained {
		if seen[phone] {
			return turn.Drained{Verdict: turn.Empty}
		}
		seen[phone] = true
		return turn.Drained{Verdict: turn.Begun}
	}
}

// first answers the first drain so; after it nothing waits.
func first(d turn.Drained) func(string) turn.Drained {
	asked := false
	return func(string) turn.Drained {
		if asked {
			return turn.Drained{Verdict: turn.Empty}
		}
		asked = true
		return d
	}
}
