package turn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/turn"
)

func (c *clinic) leaseUntil() string { return c.value(`SELECT lease_until FROM turns`) }

// A turn that runs is renewed; one whose goroutine has ended is not, or it would stay leased for ever.
func TestKeeperRenewsWhatReallyRuns(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	w := c.begin()
	before := c.leaseUntil()
	kept, release := c.keeper.Keep(t.Context(), w.ID, w.Attempt, time.Now())
	c.keeper.Renew(t.Context())
	renewed := c.leaseUntil()
	if renewed <= before {
		t.Errorf("the lease of a turn that runs was not renewed")
	}
	if kept.Err() != nil {
		t.Errorf("a turn that was renewed was stopped: %v", context.Cause(kept))
	}
	release()
	c.keeper.Renew(t.Context())
	if got := c.leaseUntil(); got != renewed {
		t.Errorf("the lease of a turn that has stopped was renewed")
	}
}

func TestKeeperStops(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		what func(*clinic, turn.Work)
		want error
	}{
		"claimed by another": {func(c *clinic, _ turn.Work) {
			c.exec(`UPDATE turns SET attempt = attempt + 1`)
			c.keeper.Renew(c.Context())
		}, turn.ErrLeaseLost},
		"erased": {func(c *clinic, _ turn.Work) {
			c.exec(`SELECT fila_erase('clinic', $1, 'rita')`, phones[0])
			c.keeper.Renew(c.Context())
		}, turn.ErrLeaseLost},
		"claimed here a second time": {func(c *clinic, w turn.Work) {
			_, release := c.keeper.Keep(c.Context(), w.ID, w.Attempt+1, time.Now())
			c.Cleanup(release)
		}, turn.ErrLeaseLost},
		"interrupted elsewhere": {func(c *clinic, _ turn.Work) {
			c.exec(`UPDATE turns SET reason = 'interrupted'`)
			c.keeper.Renew(c.Context())
		}, turn.ErrInterrupted},
		"interrupted here": {func(c *clinic, w turn.Work) { c.keeper.Interrupt(w.ID) }, turn.ErrInterrupted},
		"shut down":        {func(c *clinic, _ turn.Work) { c.keeper.Shutdown() }, turn.ErrShutdown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			w := c.begin()
			kept, release := c.keeper.Keep(t.Context(), w.ID, w.Attempt, time.Now())
			defer release()
			test.what(c, w)
			if cause := context.Cause(kept); !errors.Is(cause, test.want) {
				t.Errorf("stopped by %v, want %v", cause, test.want)
			}
		})
	}
}

// A database that is away for longer than the lease cannot say who has the turn: it is given up.
func TestKeeperGivesUpWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	w := c.begin()
	store := turn.NewStore(c.pool, "one", 200*time.Millisecond)
	keeper := turn.NewKeeper(store, zerolog.Nop())
	kept, release := keeper.Keep(t.Context(), w.ID, w.Attempt, time.Now())
	defer release()
	c.pool.Close()
	running, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- keeper.Run(running) }()
	select {
	case <-kept.Done():
		if !errors.Is(context.Cause(kept), turn.ErrLeaseLost) {
			t.Errorf("stopped by %v", context.Cause(kept))
		}
	case <-time.After(patience):
		t.Error("the turn goes on without its lease")
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
