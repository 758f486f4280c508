package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fila/internal/turn"
)

const second = time.Second

// TestWindows is when a burst of messages that arrive at these moments is looked at.
func TestWindows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		window  Window
		arrives []time.Duration
		drains  []string
	}{
		"one":                   {Window{10 * second, 50 * second, 100}, []time.Duration{0}, []string{"10s"}},
		"each moves the window": {Window{10 * second, 50 * second, 100}, []time.Duration{0, 4 * second, 9 * second}, []string{"19s"}},
		"two bursts":            {Window{10 * second, 50 * second, 100}, []time.Duration{0, 11 * second}, []string{"10s", "21s"}},
		"ceiling": {
			Window{10 * second, 25 * second, 100},
			[]time.Duration{0, 9 * second, 18 * second, 24 * second, 26 * second},
			[]string{"25s", "36s"},
		},
		"ceiling below the window": {Window{10 * second, 4 * second, 100}, []time.Duration{0, second}, []string{"4s"}},
		"count":                    {Window{10 * second, 50 * second, 3}, []time.Duration{0, second, 2 * second, 3 * second}, []string{"2s", "13s"}},
		"count of one":             {Window{10 * second, 50 * second, 1}, []time.Duration{0, second}, []string{"0s", "1s"}},
		"no window":                {Window{0, 0, 100}, []time.Duration{0, second, 2 * second}, []string{"0s", "1s", "2s"}},
		"a fraction":               {Window{250 * time.Millisecond, second, 100}, []time.Duration{0, 200 * time.Millisecond}, []string{"450ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := project("sul", 0)
			p.Window = c.window
			w := &world{}
			play(t, w, func() {
				for _, at := range c.arrives {
					w.until(at)
					w.Arrived("sul", "1")
				}
				w.until(time.Minute)
				var want []string
				for _, at := range c.drains {
					want = append(want, at+" drain sul 1")
				}
				w.expect(want...)
			}, p)
		})
	}
}

func TestConversationsHaveWindowsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := &world{}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.Arrived("sul", "2")
		w.Arrived("norte", "1")
		w.Arrived("nobody", "1")
		w.until(4 * second)
		w.Arrived("sul", "1")
		w.until(time.Minute)
		w.expect("3s drain norte 1", "10s drain sul 2", "14s drain sul 1")
	}, project("sul", 10*second), project("norte", 3*second))
}

// TestOneDrainForAll: what falls due together is asked about together.
func TestOneDrainForAll(t *testing.T) {
	t.Parallel()
	w := &world{}
	p := project("sul", 10*second)
	p.Concurrency = 1000
	play(t, w, func() {
		for n := range 2*drainAtOnce + 1 {
			w.Arrived("sul", fmt.Sprint(n))
		}
		w.until(time.Minute)
		if got := w.heard(); len(got) != 3 {
			w.Errorf("%d drains", len(got))
		}
	}, p)
}

// TestTheDatabaseSaysWhen: what it says of a burst that is not due is followed exactly, and nothing is asked in between.
func TestTheDatabaseSaysWhen(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{turn.Early, turn.Human, turn.HangingUp} {
		t.Run(verdict, func(t *testing.T) {
			t.Parallel()
			w := &world{drains: first(turn.Drained{Verdict: verdict, Wait: 3500 * time.Millisecond, FirstAgo: 10 * second, Waiting: 2})}
			play(t, w, func() {
				w.Arrived("sul", "1")
				w.until(time.Minute)
				w.expect("10s drain sul 1", "13.5s drain sul 1")
			}, project("sul", 10*second))
		})
	}
}

// TestEarlyKeepsTheBurst: its age and length still count for what arrives later.
func TestEarlyKeepsTheBurst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waiting int
		drains  string
	}{"ceiling": {2, "25s drain sul 1"}, "count": {99, "12s drain sul 1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := project("sul", 10*second)
			p.MaxWait = 25 * second
			// Somebody types: the window began again five seconds ago.
			w := &world{drains: first(turn.Drained{Verdict: turn.Early, Wait: 5 * second, FirstAgo: 10 * second, Waiting: c.waiting})}
			play(t, w, func() {
				w.Arrived("sul", "1")
				w.until(12 * second)
				w.Arrived("sul", "1")
				w.until(14 * second)
				if name == "ceiling" {
					w.until(20 * second)
					w.Arrived("sul", "1")
				}
				w.until(time.Minute)
				w.expect("10s drain sul 1", c.drains)
			}, p)
		})
	}
}

// TestNothingToDo: these have events of their own, and are not asked about again.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{turn.Empty, turn.Open, turn.Suspended} {
		t.Run(verdict, func(t *testing.T) {
			t.Parallel()
			w := &world{drains: func(string) turn.Drained { return turn.Drained{Verdict: verdict} }}
			play(t, w, func() {
				w.Arrived("sul", "1")
				w.until(5 * time.Minute)
				w.expect("10s drain sul 1")
			}, project("sul", 10*second))
		})
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	w := &world{drains: first(turn.Drained{Verdict: turn.Busy})}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.until(10*second + busyPause/2 - 1)
		w.expect("10s drain sul 1")
		w.until(10*second + 2*busyPause)
		if got := w.heard(); len(got) != 1 {
			w.Errorf("got %q", got)
		}
	}, project("sul", 10*second))
}

func TestWhatWaitedBeforeTheStart(t *testing.T) {
	t.Parallel()
	w := &world{waits: []turn.Waiting{
		{Project: "sul", Phone: "1", DueIn: -time.Hour, FirstAgo: 2 * time.Hour, Messages: 3},
		{Project: "sul", Phone: "2", DueIn: 4 * second, FirstAgo: 6 * second, Messages: 1},
	}}
	play(t, w, func() {
		w.until(3 * second)
		w.Arrived("sul", "2")
		w.until(time.Minute)
		w.expect("13s drain sul 2")
	}, project("sul", 10*second))
}

func TestConfigureMovesWhatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		window time.Duration
		drain  string
	}{"shorter": {4 * second, "4s drain sul 1"}, "longer": {20 * second, "20s drain sul 1"}, "over": {second, "2s drain sul 1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{}
			play(t, w, func() {
				w.Arrived("sul", "1")
				w.until(2 * second)
				// The message came two seconds ago.
				w.set(func() {
					w.waits = []turn.Waiting{{Project: "sul", Phone: "1", DueIn: c.window - 2*second, FirstAgo: 2 * second, Messages: 1}}
				})
				w.Configure([]Project{project("sul", c.window)})
				w.until(time.Minute)
				got := w.heard()
				drains := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s != c.drain })
				if len(got) != 3 || len(drains) != 1 { // it reads, claims and drains
					w.Errorf("got %q", got)
				}
				w.Arrived("sul", "2")
				w.until(time.Minute + c.window)
				w.expect((time.Minute + c.window).String() + " drain sul 2")
			}, project("sul", 10*second))
		})
	}
}

func TestAProjectThatComesLater(t *testing.T) {
	t.Parallel()
	w := &world{}
	play(t, w, func() {
		w.until(second)
		w.Configure([]Project{project("sul", 10*second), project("norte", 5*second)})
		w.until(2 * second)
		w.heard()
		w.Arrived("norte", "1")
		w.until(time.Minute)
		w.expect("7s drain norte 1")
	}, project("sul", 10*second))
}

// TestARemovedProjectIsAnsweredToItsEnd by its old settings.
func TestARemovedProjectIsAnsweredToItsEnd(t *testing.T) {
	t.Parallel()
	w := &world{drains: once()}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.until(second)
		w.Configure([]Project{project("norte", 5*second)})
		w.until(5 * second)
		w.heard()
		w.Arrived("sul", "1") // it was on its way when the file changed
		w.until(time.Minute)
		w.Retry("sul", second)
		w.until(2 * time.Minute)
		w.expect("15s drain sul 1", "15s run sul 1", "15s drain sul 1", "1m1s claim sul 50")
	}, project("sul", 10*second))
}
