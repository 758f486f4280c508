package turn

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/postgres"
)

// Keeper renews the leases of the turns that this process is really running, and stops those that it has lost. It renews by
// turn and not by owner: a turn whose goroutine is gone must not stay leased for ever.
type Keeper struct {
	store *Store
	lease time.Duration
	log   zerolog.Logger

	mu   sync.Mutex
	held map[int64]*hold
}

// hold is one running turn. The lease counts from the moment the last successful renewal was sent, on this machine's
// monotonic clock: never by comparing a row's time with ours.
type hold struct {
	attempt int
	since   time.Time
	cancel  context.CancelCauseFunc
	// expiry stops the turn a little before another instance may take it over: hanging up takes a moment.
	expiry *time.Timer
}

// margin is how long before its end a lease that was not renewed is given up.
func (k *Keeper) margin() time.Duration { return k.lease / 5 }

// NewKeeper makes a keeper for the turns of one store.
func NewKeeper(store *Store, log zerolog.Logger) *Keeper {
	return &Keeper{store: store, lease: store.lease, log: log, held: map[int64]*hold{}}
}

// keep holds the turn until release is called. Its context ends with a cause when the turn is to be stopped.
func (k *Keeper) keep(ctx context.Context, turn int64, attempt int, leased time.Time) (kept context.Context, release func()) {
	kept, cancel := context.WithCancelCause(ctx)
	h := &hold{attempt: attempt, since: leased, cancel: cancel}
	h.expiry = time.AfterFunc(time.Until(leased.Add(k.lease-k.margin())), func() { cancel(errLeaseLost) })
	k.mu.Lock()
	if before, ok := k.held[turn]; ok {
		// Claimed here a second time: its lease had run out before we noticed. The first run is somebody else from now on.
		before.cancel(errLeaseLost)
	}
	k.held[turn] = h
	k.mu.Unlock()
	return kept, func() {
		k.mu.Lock()
		if k.held[turn] == h {
			delete(k.held, turn)
		}
		k.mu.Unlock()
		h.expiry.Stop()
		cancel(nil)
	}
}

// Interrupt stops the turn if this process runs it, and says whether it does.
func (k *Keeper) Interrupt(turn int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := k.held[turn]
	if ok {
		h.cancel(errInterrupted)
	}
	return ok
}

// Run renews until ctx ends. While nothing runs it sends nothing.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(max(k.lease/3, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			k.renew(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *Keeper) renew(ctx context.Context) {
	turns, attempts := k.list()
	if len(turns) == 0 {
		return
	}
	sent := time.Now()
	bounded, cancel := context.WithTimeout(ctx, k.lease/3)
	kept, err := k.store.renew(bounded, turns, attempts)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			k.log.Warn().Str("error", postgres.Safe(err)).Int("turns", len(turns)).Msg("leases not renewed")
		}
		return
	}
	k.settle(sent, turns, attempts, kept)
}

func (k *Keeper) list() (turns []int64, attempts []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, h := range k.held {
		turns = append(turns, id)
		attempts = append(attempts, h.attempt)
	}
	return turns, attempts
}

// settle notes what was renewed and stops what was not, unless it was let go or claimed anew meanwhile.
func (k *Keeper) settle(sent time.Time, turns []int64, attempts []int, kept []renewal) {
	ours := make(map[int64]bool, len(kept))
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range kept {
		ours[r.turn] = true
		h, ok := k.held[r.turn]
		if ok && r.renewed {
			h.since = sent
			h.expiry.Reset(time.Until(sent.Add(k.lease - k.margin())))
		}
		if ok && r.interrupted {
			h.cancel(errInterrupted)
		}
	}
	for i, id := range turns {
		if h, ok := k.held[id]; ok && h.attempt == attempts[i] && !ours[id] {
			h.cancel(errLeaseLost)
		}
	}
}

// check stops the turn if its lease has run out by our own clock. A process that was frozen finds out here, before it calls
// anyone, and not only at its next renewal.
func (k *Keeper) check(turn int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.held[turn]; ok && time.Since(h.since) > k.lease-k.margin() {
		h.cancel(errLeaseLost)
	}
}

// Shutdown stops every turn that still runs.
func (k *Keeper) Shutdown() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.held {
		h.cancel(errShutdown)
	}
}
