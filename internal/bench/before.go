package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fila/internal/postgres"
	statement "fila/sql"
)

// parked is the project of what lies in the tables beside the load: its conversations wait for an hour.
const parked = "parked"

// insufficientPrivilege is what a server says to who may not have it write everything.
const insufficientPrivilege = "42501"

// Start is how the service came up on a database in which conversations wait. Seconds count from the start of the process.
type Start struct {
	Ready float64 `json:"ready_s"`
	// FirstCall is when the agent was asked about the burst that was overdue, Timers when every waiting conversation had its timer.
	FirstCall float64 `json:"first_call_s"`
	Timers    float64 `json:"timers_s"`
	// RSSPerWaiting is what the service holds beyond one without waiting conversations, by their number.
	RSSPerWaiting float64 `json:"rss_bytes_per_waiting"`
}

// past fills the tables, and returns the resident bytes of a service on empty ones, which it needs for that: it makes the tables.
func past(ctx context.Context, o Options, d *database, receiver string) (empty int64, err error) {
	s, err := serve(ctx, o, d.url, receiver)
	if err != nil {
		return 0, err
	}
	pause(ctx, flushed)
	empty = residentBytes(s.command.Process.Pid)
	s.stop()
	for _, fill := range []struct {
		name, vacuum string
		rows         int
	}{{"bench_history", "bench_history_vacuum", o.History}, {"bench_waiting", "bench_waiting_vacuum", o.Waiting}} {
		if fill.rows == 0 {
			continue
		}
		o.Progress(strings.TrimPrefix(fill.name, "bench_"), 0)
		if _, err := d.conn.Exec(ctx, statement.Named(fill.name), fill.rows); err != nil {
			return 0, fmt.Errorf("fill the tables: %w", err)
		}
		if _, err := d.conn.Exec(ctx, statement.Named(fill.vacuum)); err != nil {
			return 0, fmt.Errorf("vacuum the tables: %w", err)
		}
	}
	if _, err := d.conn.Exec(ctx, statement.Named("bench_history_after")); err != nil {
		return 0, fmt.Errorf("number the turns: %w", err)
	}
	if _, err := d.conn.Exec(ctx, statement.Named("bench_checkpoint")); err != nil && postgres.Code(err) != insufficientPrivilege {
		return 0, fmt.Errorf("write the tables: %w", err)
	}
	return empty, nil
}

// begun waits until the service has taken up what waits.
func begun(ctx context.Context, o Options, s *service, j *judge) (*Start, error) {
	start := &Start{Ready: s.ready.Seconds()}
	select {
	case after := <-s.timers:
		start.Timers = after.Seconds()
	case <-time.After(settleFor):
		return nil, fmt.Errorf("the service has not taken up %d waiting conversations within %s", o.Waiting, settleFor)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case at := <-j.parked:
		start.FirstCall = at.Sub(s.started).Seconds()
	case <-time.After(settleFor):
		return nil, fmt.Errorf("the agent was not asked about the overdue conversation within %s", settleFor)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return start, nil
}
