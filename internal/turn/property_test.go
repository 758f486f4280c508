package turn_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"fila/internal/race"
)

// cases is how many lives of a clinic one run of the suite goes through, shared out over shards that run side by side, each on
// a database of its own. `go test ./internal/turn -args -rapid.checks=N` gives each shard N instead, and -rapid.seed repeats
// a case.
const (
	cases  = 500
	shards = 4
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"rapid.checks": fmt.Sprint(cases / shards), "rapid.steps": "25", "rapid.shrinktime": "20s", "rapid.nofailfile": "true",
	} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
	// The server of a lone test program is supervised until that ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("fila/internal/postgres/cluster.(*Cluster).supervise"))
}

// points are the places at which a process can die, and seldom those of them that few runs come by.
var (
	points = []string{
		"begin", inCall, "before ask", "after ask", "before reply", "after reply", "before await reply", "after await reply",
		"before parts", "after parts", "before gate", "after gate", "before part", "after part", "before sent", "after sent", "before fail", "after fail",
		"before question", "after question", "before question of a part", "after question of a part",
		"before fallback", "after fallback", "before last word", "after last word", "before fallback sent", "after fallback sent",
		"before interrupted", "after interrupted", "before hung up", "after hung up", "before hand back", "after hand back",
	}
	seldom = []string{
		"before parts", "after parts", "before fallback", "after fallback", "before last word", "after last word", "before fallback sent",
		"after fallback sent", "before hung up", "after hung up", "before gate", "after gate", "before await reply", "after await reply",
	}
)

// sometimes should have happened in a full run, or the run has proved less than it says.
var sometimes = []string{
	"message queued", "message duplicate", "message ignored", "from the clinic: echo", "from the clinic: from_me",
	"foreign row queued", "foreign row duplicate", "foreign row ignored",
	"drain: drained", "drain: early", "drain: empty", "drain: open", "drain: hanging_up", "drain: human", "drain: suspended", "drain: interrupt",
	"fired by quiet", "fired by ceiling", "fired by count", "fired by flush", "fired by resume", "burst over max_messages",
	"claim: retry", "claim: abandoned", "claim: handed_back", "claim: held", "claim: overdue", "claim: reconcile",
	"discarded for a person at a claim", "late writer", "late writer refused", "late failure refused", "lease lost",
	"interrupted here", "interrupted elsewhere: asked", "interrupted elsewhere: superseded",
	"call back: held", "call back: repeated", "call back: stale", "confirm: proceed", "confirm: superseded", "confirm: human",
	"resolve agent, done", "resolve agent, not_done", "resolve delivery, done", "resolve delivery, not_done",
	"reconciled: agent, done: true", "reconciled: agent, done: false", "reconciled: delivery, done: true", "reconciled: delivery, done: false",
	"redrive", "discard", "take over", "release", "suspend", "resume, answer", "resume, discard", "flush", "erase with a turn open", "erase with a turn over",
	"by itself: human", "by itself: suspended", "on its way in silence",
	"silenced in state running", "silenced in state sending", "silenced in state unknown",
	"state retrying", "state replied", "state sending", "state unknown", "state done", "state superseded", "state discarded", "state dead",
}

// essential is what hundreds of cases cannot miss unless the property has stopped to look.
var essential = []string{
	"message queued", "message duplicate", "message ignored", "foreign row queued", "drain: drained", "drain: early", "drain: open",
	"claim: retry", "claim: abandoned", "late writer refused", "redrive", "discard", "take over", "release", "suspend", "resume, answer",
	"state retrying", "state replied", "state sending", "state unknown", "state done", "state superseded", "state discarded", "state dead",
	"crash around begin", "crash around ask", "crash around reply", "crash around part",
}

// live is the property: whatever happens, the invariants hold after every action, and in the end everything settles.
func live(w *world) func(*rapid.T) {
	return func(t *rapid.T) {
		m := newMachine(t, w)
		defer m.close()
		t.Repeat(map[string]func(*rapid.T){"": func(*rapid.T) {}, "step": m.step})
		m.settle()
	}
}

func TestTurnsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	counts := &tally{events: map[string]int{}}
	t.Run("cases", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprint("shard ", shard+1), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, live(newWorld(t, counts)))
			})
		}
	})
	if t.Failed() || flag.Lookup("rapid.checks").Value.String() != fmt.Sprint(cases/shards) || testing.Short() {
		return
	}
	// The draws differ from run to run. What hardly any run misses is demanded; the rarer rest is told, for whoever widens them.
	for _, event := range essential {
		if counts.events[event] == 0 {
			t.Errorf("in %d cases it never happened: %s", cases, event)
		}
	}
	for _, event := range wanted() {
		if counts.events[event] == 0 {
			t.Logf("in %d cases it never happened: %s", cases, event)
		}
	}
	if testing.Verbose() {
		for _, event := range slices.Sorted(maps.Keys(counts.events)) {
			t.Logf("%6d %s", counts.events[event], event)
		}
	}
}

// wanted are the events that a run should see, and a death at each step, before or behind it.
func wanted() []string {
	events := slices.Clone(sometimes)
	for _, point := range points {
		events = append(events, crashAround(point))
	}
	return events
}

// crashAround is the event of a death at the point, the same before and behind a step.
func crashAround(point string) string {
	step := strings.TrimPrefix(strings.TrimPrefix(point, "before "), "after ")
	return "crash around " + step
}

// Each of these faults, built into the functions of a database, must make the property fail; the search ends at the first case
// that does. Which case that is, is a matter of luck: asked for by FILA_PROPERTY_FAULTS=1.
func TestPropertyCatchesFaults(t *testing.T) {
	t.Parallel()
	if os.Getenv("FILA_PROPERTY_FAULTS") == "" {
		t.Skip("takes minutes; set FILA_PROPERTY_FAULTS=1 to see the property fail on each broken variant")
	}
	for fault, favoured := range map[string]string{
		"sent_unfenced":            "freeze in a call", // no fence where a part's result is written
		"reply_unfenced":           "freeze in a call", // no fence where the reply is written
		"redrive_resets_counter":   "redrive",          // the fence begins anew
		"claim_same_attempt":       "",                 // nothing tells the new owner from the old one
		"drain_beside_open_turn":   "",                 // DO NOTHING behind the DELETE
		"gate_whatever_mode":       "",                 // the gate does not ask who has the conversation
		"resolve_asks_again":       "",                 // a resolved delivery asks the agent for a second reply
		"adopt_twice":              "foreign row",      // a foreign row of a known id is answered
		"supersede_loses_messages": "",                 // what a superseded turn had is gone
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, &tally{events: map[string]int{}})
			w.favoured = favoured
			if err := race.Fault(t.Context(), w.pool, fault); err != nil {
				t.Fatal(err)
			}
			said := firstFailure(t.Name(), live(w))
			if said == "" {
				t.Fatal("the property holds in spite of the fault")
			}
			t.Log(verdict(said))
		})
	}
}

// verdict is the sentence in which the property failed.
func verdict(said string) string {
	_, said, _ = strings.Cut(said, "Original traceback (")
	said, _, _ = strings.Cut(said, "):\n")
	return said
}

// firstFailure checks the property until it fails for the first time, without looking for a smaller case.
func firstFailure(name string, property func(*rapid.T)) string {
	quiet := &bystander{name: name}
	var done sync.WaitGroup
	done.Go(func() {
		rapid.Check(quiet, func(t *rapid.T) {
			if quiet.seen {
				return // what follows a failure is the search for a smaller one
			}
			defer func() { quiet.seen = t.Failed() }()
			property(t)
		})
	})
	done.Wait()
	return quiet.said
}

// bystander takes what rapid says to a test and fails nobody.
type bystander struct {
	name   string
	seen   bool
	failed bool
	said   string
}

func (b *bystander) Helper()                      {}
func (b *bystander) Name() string                 { return b.name }
func (b *bystander) Logf(string, ...any)          {}
func (b *bystander) Log(...any)                   {}
func (b *bystander) Skipf(string, ...any)         { b.SkipNow() }
func (b *bystander) Skip(...any)                  { b.SkipNow() }
func (b *bystander) SkipNow()                     { runtime.Goexit() }
func (b *bystander) Errorf(f string, args ...any) { b.said += fmt.Sprintf(f, args...); b.Fail() }
func (b *bystander) Error(args ...any)            { b.said += fmt.Sprint(args...); b.Fail() }
func (b *bystander) Fatalf(f string, args ...any) { b.Errorf(f, args...); b.FailNow() }
func (b *bystander) Fatal(args ...any)            { b.Error(args...); b.FailNow() }
func (b *bystander) FailNow()                     { b.failed = true; runtime.Goexit() }
func (b *bystander) Fail()                        { b.failed = true }
func (b *bystander) Failed() bool                 { return b.failed }
