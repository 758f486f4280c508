package cluster

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

const (
	// quickFailures in a row are enough to see that starting again is no help.
	quickFailures = 6
	// longEnough a server must have run for its end to count as a first failure.
	longEnough = 30 * time.Second
	firstPause = 100 * time.Millisecond
)

// supervise keeps the server running until it is stopped or will not stay up.
func (c *Cluster) supervise() {
	// Linux sends a child the signal of its parent's death when the thread that
	// started it ends, so this goroutine keeps its thread to itself for as long
	// as the server lives. The thread ends with it.
	runtime.LockOSThread()
	defer close(c.done)
	defer c.leave()
	for failures := 0; ; {
		begun := time.Now()
		err := c.runOnce()
		if c.stopping() {
			return
		}
		if time.Since(begun) > longEnough {
			failures = 0
		}
		failures++
		if failures == quickFailures || !c.worthRepeating(err) {
			c.err = fmt.Errorf("the private Postgres in %s does not stay up: %w; see %s", c.site.folder, err, c.site.log())
			return
		}
		c.options.Log.Warn().Err(err).Int("failures", failures).Msg("private Postgres ended by itself: starting it again")
		c.pause(firstPause << (failures - 1))
	}
}

// worthRepeating tells a server that was up, or is kept from starting by the last
// sessions of one that was killed, from one that cannot start at all.
func (c *Cluster) worthRepeating(err error) bool {
	select {
	case <-c.answered:
		return true
	default:
		return strings.Contains(err.Error(), "shared memory block")
	}
}

// runOnce runs one server from its start to its end and says why it ended.
func (c *Cluster) runOnce() error {
	s, err := c.launch()
	if err != nil || s == nil {
		return err
	}
	err = s.wait()
	c.mu.Lock()
	c.current = nil
	c.mu.Unlock()
	return err
}

// launch starts a server unless the end is wanted: then it returns nil.
func (c *Cluster) launch() (*server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping() {
		return nil, nil
	}
	var doomed []string
	if c.options.Temporary {
		doomed = c.site.all()
	}
	s, err := startServer(c.site, c.binaries, c.settings(), doomed)
	if err != nil {
		return nil, err
	}
	c.current = s
	return s, nil
}

func (c *Cluster) pause(d time.Duration) {
	select {
	case <-c.stop:
	case <-time.After(d):
	}
}

// leave gives back what the cluster held. Nobody waits for an error here, so it
// is logged.
func (c *Cluster) leave() {
	var errs []error
	if c.options.Temporary {
		for _, path := range c.site.all() {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	if c.site.socket != c.site.ownSocket() {
		_ = os.Remove(c.site.socket) // empty, unless the server was killed: then its next run finds it
	}
	errs = append(errs, c.site.close(), c.lock.release())
	if err := errors.Join(errs...); err != nil {
		c.options.Log.Warn().Err(err).Msg("private Postgres left something behind")
	}
}
