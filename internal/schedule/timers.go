package schedule

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"time"
)

// conversation names one patient of one project.
type conversation struct{ project, phone string }

// timer is one waiting conversation: when its burst falls due as far as this process knows. The database decides; a timer
// only says when to ask.
type timer struct {
	conversation
	due   time.Time
	first time.Time
	// filed is the deadline that the heap knows; due may have moved behind it since.
	filed time.Time
	count int32
	place int32
}

// timers hold one entry a conversation, whatever the number of its messages, and one sleeping goroutine for all of them.
type timers struct {
	mu    sync.Mutex
	byKey map[conversation]*timer
	order order
	// earlier tells the sleeper that something falls due before what it sleeps for.
	earlier chan struct{}
}

func newTimers() *timers {
	return &timers{byKey: map[conversation]*timer{}, earlier: make(chan struct{}, 1)}
}

// arrived moves the conversation's deadline for one more message: the window after now, the ceiling after the burst's first
// message, or at once when the burst is full.
func (t *timers) arrived(c conversation, w Window, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, known := t.byKey[c]
	if !known {
		e = &timer{conversation: c, first: now}
	}
	e.count++
	due := now.Add(w.Debounce)
	if ceiling := e.first.Add(w.MaxWait); w.Debounce > 0 && ceiling.Before(due) {
		due = ceiling
	}
	if int(e.count) >= w.MaxMessages {
		due = now
	}
	t.move(e, due, known)
}

// at sets the deadline itself, for what the database said or another process asked for.
func (t *timers) at(c conversation, due, first time.Time, count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, known := t.byKey[c]
	if !known {
		e = &timer{conversation: c}
	}
	e.first, e.count = first, int32(min(count, math.MaxInt32))
	t.move(e, due, known)
}

// move is lazy: a later deadline waits in the entry until the old one comes up, since every message of a burst moves it.
func (t *timers) move(e *timer, due time.Time, known bool) {
	e.due = due
	switch {
	case !known:
		e.filed = due
		t.byKey[e.conversation] = e
		heap.Push(&t.order, e)
	case due.Before(e.filed):
		e.filed = due
		heap.Fix(&t.order, int(e.place))
	}
	if t.order[0] == e && e.filed.Equal(due) {
		select {
		case t.earlier <- struct{}{}:
		default:
		}
	}
}

func (t *timers) has(c conversation) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.byKey[c]
	return ok
}

// due removes what has fallen due and says how long nothing else does.
func (t *timers) due(now time.Time) (fallen []conversation, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.order) > 0 {
		e := t.order[0]
		if wait := e.filed.Sub(now); wait > 0 {
			return fallen, wait
		}
		if e.due.After(now) {
			e.filed = e.due
			heap.Fix(&t.order, 0)
			continue
		}
		heap.Pop(&t.order)
		delete(t.byKey, e.conversation)
		fallen = append(fallen, e.conversation)
	}
	return fallen, time.Hour
}

// run calls fall with whatever falls due, until ctx ends.
func (t *timers) run(ctx context.Context, fall func([]conversation)) {
	sleep := time.NewTimer(time.Hour)
	defer sleep.Stop()
	for {
		fallen, next := t.due(time.Now())
		if len(fallen) > 0 {
			fall(fallen)
			continue
		}
		sleep.Reset(next)
		select {
		case <-sleep.C:
		case <-t.earlier:
		case <-ctx.Done():
			return
		}
	}
}

// order is a heap of timers by the deadline they are filed under.
type order []*timer

func (o order) Len() int           { return len(o) }
func (o order) Less(i, j int) bool { return o[i].filed.Before(o[j].filed) }

func (o order) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = int32(i), int32(j)
}

// Push is heap.Interface's.
func (o *order) Push(x any) {
	e := x.(*timer)
	e.place = int32(len(*o))
	*o = append(*o, e)
}

// Pop is heap.Interface's.
func (o *order) Pop() any {
	last := len(*o) - 1
	e := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return e
}
