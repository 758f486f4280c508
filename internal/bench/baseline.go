package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	statement "fila/sql"
)

// Baseline is what else this machine does in the same minutes.
type Baseline struct {
	// PgbenchTPS are transactions of one row each, by 64 clients, into a table of the queue's old shape; by pgbench where it is
	// installed, else by as many connections of ours (PgbenchBy).
	PgbenchTPS      float64 `json:"pgbench_tps"`
	PgbenchBy       string  `json:"pgbench_by"`
	PgbenchWALBytes float64 `json:"pgbench_wal_bytes_per_row"`
	// EchoRPS are answers of a process that does nothing with the same request, over 64 connections.
	EchoRPS float64 `json:"echo_rps"`
	// Sleeper is the design that this service replaces, in a process of its own under the same load: a goroutine per
	// message sleeps for the window, then takes what lies there.
	SleeperAckedPerSecond float64 `json:"sleeper_acked_per_s"`
	SleeperAckP50         float64 `json:"sleeper_ack_p50_ms"`
	SleeperAckP99         float64 `json:"sleeper_ack_p99_ms"`
}

// baselineFor bounds what each of the three takes; rates settle within seconds.
const baselineFor = 15 * time.Second

func baseline(ctx context.Context, o Options) (*Baseline, error) {
	b := &Baseline{}
	for _, step := range []struct {
		name string
		run  func(context.Context, Options, *database, *Baseline) error
	}{{"pgbench", pgbench}, {"echo", echoes}, {"sleeper", sleeps}} {
		o.Progress(step.name, 0)
		d, err := scratch(ctx, o.DatabaseURL)
		if err != nil {
			return nil, err
		}
		short := o
		short.Length = min(o.Length, baselineFor)
		err = step.run(ctx, short, d, b)
		d.drop(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return b, nil
}

// pgbench inserts single rows.
func pgbench(ctx context.Context, o Options, d *database, b *Baseline) error {
	if err := d.table(ctx); err != nil {
		return err
	}
	wal, err := d.wal(ctx)
	if err != nil {
		return err
	}
	b.PgbenchBy = "pgbench"
	b.PgbenchTPS, err = byPgbench(ctx, o.Length, d)
	if errors.Is(err, exec.ErrNotFound) {
		b.PgbenchBy = "pgx"
		b.PgbenchTPS, err = byConnections(ctx, o.Length, d)
	}
	if err != nil {
		return err
	}
	after, err := d.wal(ctx)
	if err != nil {
		return err
	}
	var rows int64
	if err := d.conn.QueryRow(ctx, statement.Named("bench_old_count")).Scan(&rows); err != nil {
		return err
	}
	b.PgbenchWALBytes = float64(after-wal) / float64(max(1, rows))
	return nil
}

func (d *database) table(ctx context.Context) error {
	_, err := d.conn.Exec(ctx, statement.Named("bench_old_table"))
	return err
}

func (d *database) wal(ctx context.Context) (bytes int64, err error) {
	var others int64
	return bytes, d.conn.QueryRow(ctx, statement.Named("bench_counters")).Scan(&others, &others, &bytes, &others)
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

func byPgbench(ctx context.Context, length time.Duration, d *database) (float64, error) {
	program, err := exec.LookPath("pgbench")
	if err != nil {
		installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
		if len(installed) == 0 {
			return 0, exec.ErrNotFound
		}
		program = installed[len(installed)-1]
	}
	script, err := os.CreateTemp("", "fila-bench-*.sql")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(script.Name()) }()
	if _, err := script.WriteString("\\set n random(0, 89999999)\n" + strings.ReplaceAll(insertOne, "$1", ":n")); err != nil {
		return 0, err
	}
	if err := script.Close(); err != nil {
		return 0, err
	}
	seconds := strconv.Itoa(max(1, int(length.Seconds())))
	said, err := exec.CommandContext(ctx, program, "-n", "-M", "prepared", "-c", strconv.Itoa(Clients), "-j", "2", "-T", seconds, "-f", script.Name(), d.url).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, said)
	}
	found := tps.FindSubmatch(said)
	if found == nil {
		return 0, fmt.Errorf("pgbench said no tps: %s", said)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

var insertOne = statement.Named("bench_old_insert")

func byConnections(ctx context.Context, length time.Duration, d *database) (float64, error) {
	pool, err := pgxpool.New(ctx, d.url+separator(d.url)+"pool_max_conns="+strconv.Itoa(Clients))
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	var done atomic.Int64
	failed := make(chan error, Clients)
	var inserting sync.WaitGroup
	started := time.Now()
	for range Clients {
		inserting.Go(func() {
			for time.Since(started) < length {
				if _, err := pool.Exec(ctx, insertOne, rand.IntN(90000000)); err != nil {
					failed <- err
					return
				}
				done.Add(1)
			}
		})
	}
	inserting.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(done.Load()) / time.Since(started).Seconds(), nil
	}
}

func separator(address string) string {
	if u, err := url.Parse(address); err == nil && u.RawQuery != "" {
		return "&"
	}
	return "?"
}

// echoes asks a process that does nothing.
func echoes(ctx context.Context, o Options, _ *database, b *Baseline) error {
	o.Rate, o.Conversations = 0, 0
	l, err := underLoad(ctx, o, "echo")
	if err != nil {
		return err
	}
	b.EchoRPS = l.rate
	return nil
}

// sleeps runs the old design under the load of the run.
func sleeps(ctx context.Context, o Options, d *database, b *Baseline) error {
	if err := d.table(ctx); err != nil {
		return err
	}
	judge, err := newJudge(0)
	if err != nil {
		return err
	}
	defer judge.close(ctx)
	l, err := underLoad(ctx, o, "sleeper", "FILA_DATABASE_URL="+d.url, "FILA_BENCH_WINDOW="+o.Window.String(), "FILA_BENCH_AGENT="+judge.url()+"/agent")
	if err != nil {
		return err
	}
	b.SleeperAckedPerSecond, b.SleeperAckP50, b.SleeperAckP99 = l.rate, milliseconds(quantile(l.acks, 0.5)), milliseconds(quantile(l.acks, 0.99))
	return nil
}

type loaded struct {
	rate float64
	acks []time.Duration
}

// underLoad puts a peer, which is this program in another role, under the run's load.
func underLoad(ctx context.Context, o Options, role string, env ...string) (loaded, error) {
	folder, err := os.MkdirTemp("", "fila-bench-")
	if err != nil {
		return loaded{}, err
	}
	s, err := start(ctx, folder, exec.CommandContext(context.WithoutCancel(ctx), o.Program, "bench", "peer", role), env...)
	if err != nil {
		return loaded{}, err
	}
	defer s.stop()
	l := newLoad(o, s.url)
	length := l.run(ctx)
	return loaded{rate: float64(l.sent.Load()) / length.Seconds(), acks: slices.Clone(l.acks)}, ctx.Err()
}
