package schedule

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTimersAgainstAList compares the heap with a list that does it the slow way.
func TestTimersAgainstAList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type burst struct {
			due, first time.Time
			count      int
		}
		started := time.Now()
		now := started
		heap, list := newTimers(), map[conversation]burst{}
		window := Window{Debounce: 10 * time.Second, MaxWait: 25 * time.Second, MaxMessages: 4}
		some := rapid.Custom(func(t *rapid.T) conversation {
			return conversation{"sul", fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "phone"))}
		})
		t.Repeat(map[string]func(*rapid.T){
			"a message arrives": func(t *rapid.T) {
				c := some.Draw(t, "conversation")
				b, known := list[c]
				if !known {
					b.first = now
				}
				b.count++
				b.due = now.Add(window.Debounce)
				if ceiling := b.first.Add(window.MaxWait); ceiling.Before(b.due) {
					b.due = ceiling
				}
				if b.count >= window.MaxMessages {
					b.due = now
				}
				list[c] = b
				heap.arrived(c, window, now)
			},
			"the database says when": func(t *rapid.T) {
				c := some.Draw(t, "conversation")
				b := burst{now.Add(time.Duration(rapid.IntRange(-2, 30).Draw(t, "due in")) * time.Second), now, rapid.IntRange(0, 3).Draw(t, "count")}
				list[c] = b
				heap.at(c, b.due, b.first, b.count)
			},
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
				var want []conversation
				next := time.Hour
				for c, b := range list {
					if wait := b.due.Sub(now); wait > 0 {
						next = min(next, wait)
						continue
					}
					want = append(want, c)
					delete(list, c)
				}
				got, wait := heap.due(now)
				byPhone := func(a, b conversation) int { return cmp.Compare(a.phone, b.phone) }
				slices.SortFunc(got, byPhone)
				slices.SortFunc(want, byPhone)
				if !slices.Equal(got, want) {
					t.Fatalf("after %v %v fell due, want %v", now.Sub(started), got, want)
				}
				// The lazy heap may come up too early for a burst that moved, never too late for one.
				if wait > next || wait <= 0 {
					t.Fatalf("sleeps for %v, the next falls due in %v", wait, next)
				}
			},
			"": func(t *rapid.T) {
				if len(heap.order) != len(list) || len(heap.byKey) != len(list) {
					t.Fatalf("%d in the heap, %d known, of %d", len(heap.order), len(heap.byKey), len(list))
				}
				for place, e := range heap.order {
					if int(e.place) != place || !heap.has(e.conversation) {
						t.Fatalf("the timer at %d believes itself at %d", place, e.place)
					}
				}
			},
		})
	})
}

// BenchmarkTimers sets timers for conversations that all wait at once, each with a phone and a project of its own as the
// database gives them, and says what one costs.
func BenchmarkTimers(b *testing.B) {
	for _, number := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(number), func(b *testing.B) {
			for b.Loop() {
				before := allocated()
				all := waiting(number)
				each := float64(allocated()-before) / float64(number)
				b.ReportMetric(each, "bytes/conversation")
				if each >= 1000 {
					b.Errorf("%.0f bytes a conversation", each)
				}
				runtime.KeepAlive(all)
			}
		})
	}
}

func waiting(number int) *timers {
	all, now := newTimers(), time.Now()
	for n := range number {
		c := conversation{string([]byte("clinfeto")), fmt.Sprintf("55319%08d", n)}
		for message := range 3 {
			all.arrived(c, Window{10 * time.Second, 50 * time.Second, 100}, now.Add(time.Duration(n+message)*time.Millisecond))
		}
	}
	return all
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkArrived is the work of one message: its conversation's timer moves.
func BenchmarkArrived(b *testing.B) {
	all, now := waiting(100_000), time.Now()
	window := Window{10 * time.Second, 50 * time.Second, 1 << 30}
	phones := make([]string, 1000)
	for n := range phones {
		phones[n] = fmt.Sprintf("55319%08d", n)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		all.arrived(conversation{"clinfeto", phones[n%len(phones)]}, window, now.Add(time.Duration(n)))
	}
}
