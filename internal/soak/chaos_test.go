package soak_test

import (
	"context"
	"sync"
	"syscall"
	"time"
)

// chaos hurts the service at random intervals. All that it does is drawn from the seed before it looks at how things stand, so
// that a seed means the same faults again, whatever the machine makes of them.
type chaos struct {
	*soak
	dice   *dice
	faults sync.WaitGroup

	mu   sync.Mutex
	out  map[*slot]bool // being hurt
	ends []time.Time    // of the server, by our hand
}

func newChaos(s *soak) *chaos {
	return &chaos{soak: s, dice: newDice(s.seed, 0), out: map[*slot]bool{}}
}

// fault is one fault as it was drawn.
type fault struct {
	kind  float64
	slot  int
	share float64 // of the most that the kind allows, be it time or number
	pause time.Duration
}

// run hurts until ctx ends, and returns when everything is up again.
func (c *chaos) run(ctx context.Context) {
	// First of all a short sleep, since hardly one in ten of those that are drawn is shorter than the lease.
	c.withSlot(c.fleet.slots[0], func() { c.freeze(c.fleet.slots[0], fault{}) })
	for pause(ctx, c.dice.between(c.gap/2, c.gap*3/2)) {
		c.hurt(ctx, fault{
			kind: c.dice.roll(), slot: c.dice.below(instances), share: c.dice.roll(),
			pause: c.dice.between(100*time.Millisecond, 600*time.Millisecond),
		})
	}
	c.faults.Wait()
	c.awaitServer()
	for late, tick := time.Now().Add(time.Minute), 20*time.Millisecond; !c.fleet.up(); {
		if !pause(c.Context(), tick) || time.Now().After(late) {
			c.Fatal("the instances do not come up again")
		}
	}
}

func (c *chaos) hurt(ctx context.Context, f fault) {
	drawn := c.fleet.slots[f.slot]
	switch {
	case f.kind < 0.18:
		c.withSlot(drawn, func() { c.kill(drawn, f) })
	case f.kind < 0.27:
		c.aimed(ctx, func(s *slot) { c.kill(s, f) })
	case f.kind < 0.39:
		c.withSlot(drawn, func() { c.freeze(drawn, f) })
	case f.kind < 0.55:
		c.aimed(ctx, func(s *slot) { c.freeze(s, f) })
	case f.kind < 0.68:
		c.withSlot(drawn, func() { c.shutDown(drawn, f) })
	case f.kind < 0.86:
		c.cutSessions(ctx, 1+int(3*f.share))
	case f.kind < 0.94:
		c.crashServer(ctx)
	default:
		c.stopServer(ctx)
	}
}

// withSlot hurts an instance beside everything else, but not one that is being hurt, and not the last one.
func (c *chaos) withSlot(s *slot, hurt func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out[s] || len(c.out) == instances-1 {
		c.tally.count("fault left out")
		return
	}
	c.out[s] = true
	c.faults.Go(func() {
		hurt()
		c.mu.Lock()
		delete(c.out, s)
		c.mu.Unlock()
	})
}

// aimed hurts the instance that takes a turn next, in that moment.
func (c *chaos) aimed(ctx context.Context, hurt func(*slot)) {
	c.faults.Go(func() {
		pid := c.aim.next(ctx)
		for _, s := range c.fleet.slots {
			if p := s.current(); p.cmd.Process.Pid == pid {
				c.withSlot(s, func() { hurt(s) })
				c.tally.count("fault aimed")
			}
		}
	})
}

// kill ends an instance between any two of its instructions.
func (c *chaos) kill(s *slot, f fault) {
	p, from := s.current(), c.record.now()
	p.end(syscall.SIGKILL)
	<-p.gone
	c.fleet.outage(p.name, from)
	c.tally.count("fault: kill -9")
	pause(c.Context(), f.pause)
	c.fleet.start(s)
}

// freeze stops an instance for less or more than the lease; it does not know afterwards.
func (c *chaos) freeze(s *slot, f fault) {
	p, from := s.current(), c.record.now()
	length := 300*time.Millisecond + time.Duration(f.share*float64(3700*time.Millisecond))
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	pause(c.Context(), length)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	c.fleet.outage(p.name, from)
	if length > lease {
		c.tally.count("fault: frozen longer than the lease")
	} else {
		c.tally.count("fault: frozen shorter than the lease")
	}
}

// shutDown ends an instance as a deploy does.
func (c *chaos) shutDown(s *slot, f fault) {
	p, from := s.current(), c.record.now()
	c.fleet.shutDown(p)
	c.fleet.outage(p.name, from)
	c.tally.count("fault: shut down")
	pause(c.Context(), f.pause)
	c.fleet.start(s)
}

// cutSessions ends some of the instances' sessions in the middle of whatever they do.
func (c *chaos) cutSessions(ctx context.Context, n int) {
	var cut int
	err := c.pool.QueryRow(ctx, `
		SELECT count(pg_terminate_backend(pid))
		FROM (SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'fila%' ORDER BY (state = 'active') DESC, random() LIMIT $1) AS chosen`, n).Scan(&cut)
	if err == nil && cut > 0 {
		c.tally.count("fault: sessions cut")
	}
}

// crashServer kills one session's process, whereupon the server throws all of them out and recovers from its log.
func (c *chaos) crashServer(ctx context.Context) {
	var pid int
	err := c.pool.QueryRow(ctx, `
		SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`).Scan(&pid)
	if err != nil {
		return
	}
	from := c.record.now()
	if syscall.Kill(pid, syscall.SIGKILL) != nil {
		return
	}
	c.tally.count("fault: Postgres crashed")
	c.awaitServer()
	c.fleet.outage("", from)
}

const (
	// endsInARow is how often the server may be ended before it must have run for a while: its keeper gives up on one that
	// does not stay up.
	endsInARow = 4
	stayUp     = 35 * time.Second
)

// stopServer ends the server at once, as a power cut does to its memory; whoever keeps it starts it again.
func (c *chaos) stopServer(ctx context.Context) {
	if n := len(c.ends); n >= endsInARow {
		if time.Since(c.ends[n-1]) < stayUp {
			c.crashServer(ctx)
			return
		}
		c.ends = nil
	}
	pid := c.cluster.PID()
	if pid == 0 {
		return
	}
	from := c.record.now()
	if syscall.Kill(pid, syscall.SIGQUIT) != nil {
		return
	}
	c.ends = append(c.ends, time.Now())
	c.tally.count("fault: Postgres stopped")
	for c.cluster.PID() == pid && pause(c.Context(), 5*time.Millisecond) {
	}
	c.awaitServer()
	c.fleet.outage("", from)
}

// awaitServer returns when the server takes statements again.
func (c *chaos) awaitServer() {
	late := time.Now().Add(time.Minute)
	for {
		bounded, cancel := context.WithTimeout(c.Context(), time.Second)
		_, err := c.pool.Exec(bounded, "SELECT 1")
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(late) || !pause(c.Context(), 20*time.Millisecond) {
			c.Errorf("Postgres does not come up again: %v", err)
			return
		}
	}
}
