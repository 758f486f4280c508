package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fila/internal/turn"
)

// TestLateBinding: as long as no slot is free nothing is drained, so that the messages that come meanwhile join the burst.
func TestLateBinding(t *testing.T) {
	t.Parallel()
	w := &world{drains: once()}
	p := project("sul", second)
	p.Concurrency = 2
	play(t, w, func() {
		over := make(chan struct{})
		w.set(func() { w.runs = func(turn.Work) { <-over } })
		for n := range 5 {
			w.Arrived("sul", fmt.Sprint(n))
			pass(time.Millisecond)
		}
		w.until(time.Minute)
		got := w.heard()
		slices.Sort(got)
		if want := []string{"1.001s drain sul 1", "1.001s run sul 1", "1s drain sul 0", "1s run sul 0"}; !slices.Equal(got, want) {
			w.Errorf("got %q", got)
		}
		over <- struct{}{}
		w.until(time.Minute + second)
		// One slot, one conversation, and the one that has been waiting longest.
		if got := w.heard(); len(got) != 2 || got[0] != "1m0s drain sul 2" {
			w.Errorf("got %q", got)
		}
		close(over)
	}, p)
}

// TestNoLookBehindAnEmptyEnd: a turn whose end found nothing behind it is not asked after, and its slot goes to who waits for it.
func TestNoLookBehindAnEmptyEnd(t *testing.T) {
	t.Parallel()
	w := &world{drains: once(), empty: true}
	p := project("sul", second)
	p.Concurrency = 1
	play(t, w, func() {
		over := make(chan struct{})
		w.set(func() { w.runs = func(turn.Work) { <-over } })
		w.Arrived("sul", "1")
		w.until(2 * second)
		w.Arrived("sul", "2")
		w.until(4 * second)
		w.expect("1s drain sul 1", "1s run sul 1")
		over <- struct{}{}
		w.until(5 * second)
		w.expect("4s drain sul 2", "4s run sul 2")
		close(over)
		w.until(time.Minute)
		w.expect()
	}, p)
}

// TestClaimsGoFirst: turns that are there already go before new ones when a slot is free.
func TestClaimsGoFirst(t *testing.T) {
	t.Parallel()
	w := &world{drains: once()}
	p := project("sul", second)
	p.Concurrency = 1
	play(t, w, func() {
		over := make(chan struct{})
		w.set(func() { w.runs = func(turn.Work) { <-over } })
		w.Arrived("sul", "1")
		w.until(2 * second)
		w.expect("1s drain sul 1", "1s run sul 1")
		w.set(func() { w.claims = func(int) []turn.Work { return []turn.Work{{Phone: "9"}} } })
		w.Arrived("sul", "2")
		w.Retry("sul", second)
		w.until(5 * second)
		w.expect() // no slot: neither is asked for
		over <- struct{}{}
		w.until(6 * second)
		w.expect("5s claim sul 1", "5s run sul 9")
		w.set(func() { w.claims = nil })
		close(over)
		synctest.Wait()
		if got := w.heard(); len(got) < 2 || got[0] != "6s claim sul 1" || !strings.HasPrefix(got[1], "6s drain sul") {
			w.Errorf("got %q", got)
		}
	}, p)
}

// TestClaimsGoOn while there is more than the slots take.
func TestClaimsGoOn(t *testing.T) {
	t.Parallel()
	left := 5
	w := &world{claims: func(limit int) (claimed []turn.Work) {
		for ; left > 0 && len(claimed) < limit; left-- {
			claimed = append(claimed, turn.Work{Phone: fmt.Sprint(left)})
		}
		return claimed
	}}
	p := project("sul", second)
	p.Concurrency = 2
	play(t, w, func() {
		w.Retry("sul", second)
		w.until(time.Minute)
		if left != 0 {
			w.Errorf("%d turns were left lying", left)
		}
	}, p)
	if left != 0 {
		t.Errorf("%d turns were left lying", left)
	}
}

func TestLooksAgainAfterATurn(t *testing.T) {
	t.Parallel()
	w := &world{drains: once(), runs: func(turn.Work) { pass(30 * second) }}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.until(time.Minute)
		w.expect("10s drain sul 1", "10s run sul 1", "40s drain sul 1")
	}, project("sul", 10*second))
}

func TestAMessageDuringATurn(t *testing.T) {
	t.Parallel()
	open := false
	w := &world{}
	w.drains = func(string) turn.Drained {
		if open {
			return turn.Drained{Verdict: turn.Open}
		}
		open = true
		return turn.Drained{Verdict: turn.Begun}
	}
	w.runs = func(turn.Work) {
		pass(30 * second)
		w.mu.Lock()
		defer w.mu.Unlock()
		open = false
		w.drains = first(turn.Drained{Verdict: turn.Early, Wait: 2 * second})
	}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.until(15 * second)
		w.Arrived("sul", "1")
		w.until(time.Minute)
		w.expect("10s drain sul 1", "10s run sul 1", "25s drain sul 1", "40s drain sul 1", "42s drain sul 1")
	}, project("sul", 10*second))
}

func TestRetry(t *testing.T) {
	t.Parallel()
	w := &world{}
	play(t, w, func() {
		w.set(func() {
			w.claims = func(int) []turn.Work {
				w.claims = nil
				return []turn.Work{{Phone: "1"}}
			}
		})
		w.Retry("sul", 7*second)
		w.Retry("nobody", second)
		w.until(time.Minute)
		w.expect("7s claim sul 50", "7s run sul 1", "7s drain sul 1")
	}, project("sul", 10*second))
}

func TestWake(t *testing.T) {
	t.Parallel()
	w := &world{}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.until(3 * second)
		w.Wake("sul", "1")
		w.Wake("nobody", "1")
		w.until(4 * second)
		w.expect("3s claim sul 50", "3s drain sul 1")
	}, project("sul", 10*second))
}

// TestWatch: the database is asked at once, unless a timer stands for the conversation.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := &world{}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.until(3 * second)
		w.Watch("sul", "1")
		w.Watch("sul", "2")
		w.Watch("nobody", "1")
		w.until(time.Minute)
		w.expect("3s drain sul 2", "10s drain sul 1")
	}, project("sul", 10*second))
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	interrupt := turn.Drained{Verdict: turn.Interrupt, Turn: 184}
	for name, c := range map[string]struct {
		ours    bool
		verdict string
		want    []string
	}{
		"ours":       {true, "", nil},
		"asked":      {false, "asked", []string{"10s interrupt 184"}},
		"superseded": {false, "superseded", []string{"10s interrupt 184", "10s drain sul 1"}},
		"stale":      {false, "stale", []string{"10s interrupt 184", "10s drain sul 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{
				drains: first(interrupt), ours: func(id int64) bool { return c.ours && id == 184 },
				interrupt: func(int64) string { return c.verdict },
			}
			play(t, w, func() {
				w.Arrived("sul", "1")
				w.until(time.Minute)
				w.expect(append([]string{"10s drain sul 1"}, c.want...)...)
			}, project("sul", 10*second))
		})
	}
}

func TestAnInterruptThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := &world{drains: func(string) turn.Drained { return turn.Drained{Verdict: turn.Interrupt, Turn: 184} }}
	failed := false
	w.interrupt = func(int64) string { return "asked" }
	play(t, w, func() {
		w.set(func() {
			w.fails = func() error {
				if strings.Contains(w.last(), "interrupt") && !failed {
					failed = true
					return errAway
				}
				return nil
			}
		})
		w.Arrived("sul", "1")
		w.until(time.Minute)
		if got := w.heard(); len(got) != 4 || !strings.HasSuffix(got[3], "interrupt 184") {
			w.Errorf("got %q", got)
		}
	}, project("sul", 10*second))
}

// TestShutdown waits for the turns that run, and begins no others.
func TestShutdown(t *testing.T) {
	t.Parallel()
	w := &world{drains: begun, runs: func(turn.Work) { pass(time.Minute) }}
	play(t, w, func() {
		w.Arrived("sul", "1")
		w.until(5 * second)
		w.Arrived("sul", "2")
		w.until(12 * second)
		w.stop()
		<-w.ended
		w.expect("10s drain sul 1", "10s run sul 1")
		if took := time.Since(w.began); took != 70*second {
			w.Errorf("ended after %v", took)
		}
		w.Arrived("sul", "3") // told too late: nobody is there
		w.Wake("sul", "3")
	}, project("sul", 10*second))
}
