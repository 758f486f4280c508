package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"fila/internal/bench"
	"fila/internal/postgres/cluster"
)

func newBench(c *cli) *cobra.Command {
	o := bench.Options{Seed: rand.Uint64()}
	var window, seconds, agent float64
	cmd := c.withJSON(&cobra.Command{
		Use: "bench", Short: "Measure this service, on a database of its own", Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Window, o.Length, o.AgentTakes = secondsOf(window), secondsOf(seconds), secondsOf(agent)
			return c.bench(cmd.Context(), o)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.DatabaseURL, "database-url", "", "`server` on which to make a database for the run (default a private one)")
	f.IntVar(&o.Conversations, "conversations", 0, "how many patients write in turn (default a new one for every burst)")
	f.IntVar(&o.Burst, "burst", 4, "messages a burst")
	f.Float64Var(&o.Rate, "rate", 200, "messages a second; 0: as many as it takes")
	f.Float64Var(&window, "window", 1, "message_debounce_seconds")
	f.Float64Var(&seconds, "seconds", 20, "for how long messages are sent")
	f.IntVar(&o.Projects, "projects", 1, "how many projects share the load")
	f.IntVar(&o.Waiting, "waiting", 0, "how many other conversations wait meanwhile; measures the start with them too")
	f.IntVar(&o.History, "history", 0, "how many messages of the past lie in the tables")
	f.BoolVar(&o.Snapshot, "held-snapshot", false, "another session's transaction stays open all the time, so that no dead row can be removed")
	f.Float64Var(&agent, "agent-seconds", 0, "how long the agent thinks")
	f.BoolVar(&o.Baseline, "baseline", false, "measure pgbench, a no-op and the sleeping design too, and compare")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of the pauses within bursts")
	cmd.AddCommand(newBenchPeer(c))
	return cmd
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// newBenchPeer is this program in the role of what it is compared with; only a benchmark starts it.
func newBenchPeer(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "peer ROLE", Hidden: true, Args: exactly("ROLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench.Peer(cmd.Context(), args[0], c.env, c.stderr)
		},
	}
}

func (c *cli) bench(ctx context.Context, o bench.Options) (err error) {
	if o.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if o.DatabaseURL == "" {
		stop, err := c.ownServer(ctx, &o)
		if err != nil {
			return err
		}
		defer stop()
	}
	// The generator's own collector would compete with what it measures.
	debug.SetGCPercent(400)
	bar := newStages(c.stderr)
	o.Progress = bar.at
	report, err := bench.Run(ctx, o)
	bar.clear()
	if err != nil {
		return err
	}
	return c.print(report, func(w io.Writer) { writeReport(w, c.palette(), o, report) })
}

// ownServer starts a Postgres for the run, with safe commits, and gives the memory that a server of that kind has.
func (c *cli) ownServer(ctx context.Context, o *bench.Options) (stop func(), err error) {
	folder, err := os.MkdirTemp("", "fila-bench-")
	if err != nil {
		return nil, err
	}
	// Root's server runs as another user, who must get in.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, err
	}
	server, err := cluster.Start(ctx, cluster.Options{
		Folder: folder, Durable: true, Temporary: true, Log: zerolog.Nop(),
		Settings: map[string]string{"max_connections": "300", "shared_buffers": "256MB"},
	})
	if err != nil {
		return nil, err
	}
	o.DatabaseURL, o.Postmaster = server.URL("postgres"), server.PID()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = server.Stop(ctx)
		_ = os.RemoveAll(folder)
	}, nil
}
