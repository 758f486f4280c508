package turn

import (
	"context"
	"time"
)

// SetPoint has f told of every place at which the runner's process may die.
func (r *Runner) SetPoint(f func(w *Work, point string)) { r.point = f }

// Age lets time pass on this process's own clock: all that is held was renewed so much longer ago.
func (k *Keeper) Age(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.held {
		h.since = h.since.Add(-d)
	}
}

// Renew gives one sign of life for all that is held.
func (k *Keeper) Renew(ctx context.Context) { k.renew(ctx) }

// Keep holds a turn as a run does.
func (k *Keeper) Keep(ctx context.Context, turn int64, attempt int, leased time.Time) (context.Context, func()) {
	return k.keep(ctx, turn, attempt, leased)
}

// The causes with which a run is stopped.
var (
	ErrLeaseLost   = errLeaseLost
	ErrInterrupted = errInterrupted
	ErrShutdown    = errShutdown
)
