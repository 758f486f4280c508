package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fila/internal/turn"
)

// sweepAt is when the first sweep of a test is made.
const sweepAt = 10 * time.Minute

func found(kind, project, phone string) turn.Swept {
	return turn.Swept{Kind: kind, Project: project, Phone: phone}
}

func TestSweepBringsUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found turn.Swept
		want  []string
	}{
		"what somebody did from outside":    {found("wakeup", "sul", "1"), []string{"10m0s claim sul 50", "10m0s drain sul 1"}},
		"a turn that has nobody":            {found("turn", "sul", ""), []string{"10m0s claim sul 50"}},
		"rows of another program":           {found("foreign", "sul", ""), []string{"10m0s adopt sul", "10m0s drain sul 7,8"}},
		"a burst of an instance that died":  {found("overdue", "sul", "1"), []string{"10m0s drain sul 1"}},
		"nothing but the end of the queue":  {turn.Swept{Kind: "page", Project: "sul", Phone: "9", Rows: 3}, nil},
		"a kind that only a later one uses": {found("new", "sul", "1"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{adopts: []string{"7", "8"}, sweeps: func(_, _ []string) []turn.Swept { return []turn.Swept{c.found} }}
			play(t, w, func() {
				w.until(sweepAt + second)
				w.expect(c.want...)
			}, project("sul", 10*second))
		})
	}
}

// TestSweepKnowsWhatIsKnown: a burst with a timer, or one that waits for a slot, is not asked about because of a sweep.
func TestSweepKnowsWhatIsKnown(t *testing.T) {
	t.Parallel()
	w := &world{drains: once(), sweeps: func(_, _ []string) []turn.Swept {
		return []turn.Swept{found("overdue", "sul", "timer"), found("overdue", "sul", "in line"), found("overdue", "sul", "unknown")}
	}}
	p := project("sul", 10*second)
	p.Concurrency = 1
	play(t, w, func() {
		over := make(chan struct{})
		w.set(func() { w.runs = func(turn.Work) { <-over } })
		w.until(sweepAt - 20*second)
		w.Arrived("sul", "running")
		w.until(sweepAt - 15*second)
		w.Arrived("sul", "in line")
		w.until(sweepAt - second)
		w.Arrived("sul", "timer")
		w.until(2*sweepAt - 1)
		w.heard()
		close(over)
		w.until(2 * sweepAt)
		asked := map[string]int{}
		for _, s := range w.heard() {
			if _, phones, ok := strings.Cut(s, "drain sul "); ok {
				for phone := range strings.SplitSeq(phones, ",") {
					asked[phone]++
				}
			}
		}
		// Once for the burst and once after its turn.
		for _, phone := range []string{"in line", "unknown", "timer"} {
			if asked[phone] < 2 || asked[phone] > 3 {
				w.Errorf("%s was asked about %d times", phone, asked[phone])
			}
		}
	}, p)
}

// TestSweepBesideDrains: what is drained while a sweep looks is no news of that sweep's, but of the next.
func TestSweepBesideDrains(t *testing.T) {
	t.Parallel()
	w := &world{takes: 4 * second, sweeps: func(_, _ []string) []turn.Swept {
		return []turn.Swept{found("overdue", "sul", "over"), found("overdue", "sul", "under way")}
	}}
	play(t, w, func() {
		w.until(sweepAt - 12*second)
		w.Arrived("sul", "over")
		w.until(sweepAt - 8*second)
		w.Arrived("sul", "under way")
		w.until(2 * sweepAt)
		w.expect("9m58s drain sul over", "10m2s drain sul under way")
		w.until(2*sweepAt + 5*second)
		w.expect("20m4s drain sul over,under way")
		w.until(2*sweepAt + 10*second)
	}, project("sul", 10*second))
}

// TestSweepComesRound the whole queue, a page a sweep.
func TestSweepComesRound(t *testing.T) {
	t.Parallel()
	var cursors []string
	w := &world{sweeps: func(_, after []string) []turn.Swept {
		cursors = append(cursors, after[0])
		page := turn.Swept{Kind: "page", Project: "sul", Phone: "m", Rows: pageRows}
		switch after[0] {
		case "m":
			page.Phone = "t"
		case "t":
			page.Phone, page.Rows = "z", pageRows-1
		}
		return []turn.Swept{page}
	}}
	play(t, w, func() {
		w.until(5*sweepAt + second)
		if want := []string{"", "m", "t", "", "m"}; !slices.Equal(cursors, want) {
			w.Errorf("pages begin after %q, want %q", cursors, want)
		}
	}, project("sul", 10*second))
}

// TestSweepHurries through pages that hold what nobody knew, as after the death of an instance, but not for ever.
func TestSweepHurries(t *testing.T) {
	t.Parallel()
	pages := 0
	w := &world{}
	w.sweeps = func(_, after []string) []turn.Swept {
		pages++
		phone := fmt.Sprintf("%06d", pages)
		return []turn.Swept{found("overdue", "sul", phone), {Kind: "page", Project: "sul", Phone: phone, Rows: pageRows}}
	}
	play(t, w, func() {
		w.until(sweepAt + second)
		if pages != pagesAtOnce {
			w.Errorf("%d pages", pages)
		}
		drains := 0
		for _, s := range w.heard() {
			_, phones, _ := strings.Cut(s, "drain sul ")
			drains += len(strings.Split(phones, ","))
		}
		if drains != pages {
			w.Errorf("%d conversations were asked about, of %d", drains, pages)
		}
	}, project("sul", 10*second))
}

func TestSweepWithoutProjects(t *testing.T) {
	t.Parallel()
	w := &world{sweeps: func(_, _ []string) []turn.Swept { panic("asked for nothing") }}
	play(t, w, func() { w.until(3 * sweepAt) })
}

// TestDatabaseAway: a few questions a second whatever waits, and everything is looked at when it is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	w := &world{}
	play(t, w, func() {
		w.set(func() { w.fails = func() error { return errAway } })
		for n := range 150 {
			w.Arrived("sul", fmt.Sprint(n))
			w.Arrived("norte", fmt.Sprint(n))
		}
		w.Retry("sul", second)
		w.Configure([]Project{project("sul", 10*second), project("norte", 10*second)})
		w.until(time.Minute)
		// Two lanes and the reading of what waits, each once in a quarter of a second at the very most.
		if calls := len(w.heard()); calls > 3*4*60 || calls < 3*60 {
			w.Errorf("%d questions in a minute", calls)
		}
		w.set(func() { w.fails = nil })
		w.until(time.Minute + 5*second)
		asked := map[string]bool{}
		claims := 0
		for _, s := range w.heard() {
			if _, what, ok := strings.Cut(s, "drain "); ok {
				project, phones, _ := strings.Cut(what, " ")
				for phone := range strings.SplitSeq(phones, ",") {
					asked[project+phone] = true
				}
			} else if strings.Contains(s, "claim sul") {
				claims++
			}
		}
		if len(asked) != 300 || claims == 0 {
			w.Errorf("%d conversations and %d claims were looked at again", len(asked), claims)
		}
		w.until(2 * time.Minute)
		w.expect()
		w.until(sweepAt + second)
		if log := w.log.String(); strings.Count(log, "keeps trying") != 1 || strings.Count(log, "again") != 1 {
			w.Errorf("the log says\n%s", log)
		}
	}, project("sul", 10*second), project("norte", 10*second))
}

func TestSweepsGoOnWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	calls := 0
	w := &world{}
	play(t, w, func() {
		w.set(func() { w.fails = func() error { calls++; return errAway } })
		w.until(3*sweepAt + second)
		w.expect()
		if calls != 3 {
			w.Errorf("%d sweeps", calls)
		}
	}, project("sul", 10*second))
}

func TestAnAdoptionThatFails(t *testing.T) {
	t.Parallel()
	w := &world{adopts: []string{"7"}, sweeps: func(_, _ []string) []turn.Swept { return []turn.Swept{found("foreign", "sul", "")} }}
	play(t, w, func() {
		failed := false
		w.set(func() {
			w.fails = func() error {
				if strings.Contains(w.last(), "adopt") && !failed {
					failed = true
					return errAway
				}
				return nil
			}
		})
		w.until(2*sweepAt + second)
		w.expect("10m0s adopt sul", "20m0s adopt sul", "20m0s drain sul 7")
	}, project("sul", 10*second))
}

// TestOneConversationThatCannotBeDrained does not keep the others from it.
func TestOneConversationThatCannotBeDrained(t *testing.T) {
	t.Parallel()
	w := &world{}
	play(t, w, func() {
		reached := map[string]bool{}
		w.set(func() {
			w.fails = func() error {
				_, phones, _ := strings.Cut(w.last(), "drain sul ")
				all := strings.Split(phones, ",")
				if slices.Contains(all, "bad") {
					return errors.New("a turn that the database refuses")
				}
				for _, phone := range all {
					reached[phone] = true
				}
				return nil
			}
		})
		for n := range 20 {
			w.Arrived("sul", fmt.Sprint(n))
		}
		w.Arrived("sul", "bad")
		w.until(time.Minute)
		if len(reached) != 20 {
			w.Errorf("%d of the others were drained", len(reached))
		}
		if calls := len(w.heard()); calls > 300 {
			w.Errorf("%d questions in a minute", calls)
		}
	}, project("sul", 10*second))
}
