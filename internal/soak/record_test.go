package soak_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"fila/internal/soak/history"
)

// record gathers what everybody sees, on one monotonic clock.
type record struct {
	begun time.Time

	mu sync.Mutex
	h  history.History
}

func newRecord() *record {
	return &record{begun: time.Now(), h: history.History{Rules: clinics, Lease: lease}}
}

func (r *record) now() time.Duration { return time.Since(r.begun) }

func note[T any](r *record, list func(*history.History) *[]T, one ...T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	into := list(&r.h)
	*into = append(*into, one...)
}

func posts(h *history.History) *[]history.Post     { return &h.Posts }
func inserts(h *history.History) *[]history.Insert { return &h.Inserts }
func asks(h *history.History) *[]history.Ask       { return &h.Asks }
func sends(h *history.History) *[]history.Send     { return &h.Sends }
func outages(h *history.History) *[]history.Outage { return &h.Outages }

func (r *record) lost(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Lost += n
}

// settled notes what was left when the time was over, nothing where all was well.
func (r *record) settled(left string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Settled, r.h.Unsettled = left == "", left
}

func (r *record) all() *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.h
	return &h
}

// dice are a source of chance that several goroutines may use.
type dice struct {
	mu     sync.Mutex
	source *rand.Rand
}

// newDice gives everybody in a run their own, so that what one draws does not change what another one does.
func newDice(seed, whose uint64) *dice {
	return &dice{source: rand.New(rand.NewPCG(seed, whose))}
}

func (d *dice) roll() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source.Float64()
}

// below is a whole number from 0 up to n, without n.
func (d *dice) below(n int) int { return int(d.roll() * float64(n)) }

func (d *dice) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.roll()*float64(to-from))
}
