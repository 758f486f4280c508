package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	statement "fila/sql"
)

// idleFor is how long the service is watched before anything is sent, settleTick how often its end is looked for.
const (
	idleFor    = 5 * time.Second
	settleTick = 20 * time.Millisecond
	// flushed is after how long the server's statistics know of what a session has done.
	flushed = 1500 * time.Millisecond
)

// measure runs the service in its database and reads everything that can be read.
func measure(ctx context.Context, o Options, d *database) (r Report, err error) {
	judge, err := newJudge(o.AgentTakes)
	if err != nil {
		return r, err
	}
	defer judge.close(ctx)
	crowded := o.Waiting > 0 || o.History > 0
	var empty int64
	if crowded {
		if empty, err = past(ctx, o, d, judge.url()); err != nil {
			return r, err
		}
	}
	o.Progress("start", 0)
	s, err := serve(ctx, o, d.url, judge.url())
	if err != nil {
		return r, err
	}
	defer s.stop()
	if o.Waiting > 0 {
		if r.Start, err = begun(ctx, o, s, judge); err != nil {
			return r, err
		}
	}
	meter := meter{o: o, database: d, pid: s.command.Process.Pid}
	before, idle, err := meter.rest(ctx)
	if err != nil {
		return r, err
	}

	if o.Snapshot {
		release, err := d.hold(ctx)
		if err != nil {
			return r, err
		}
		defer release()
	}
	l := newLoad(o, s.url)
	length := l.run(ctx)
	sent := time.Now()
	o.Progress("answers", 0)
	for !judge.settled(len(l.acked)) && time.Since(sent) < settleFor && ctx.Err() == nil {
		pause(ctx, settleTick)
	}
	r.SettleSeconds = time.Since(sent).Seconds()
	pause(ctx, flushed)
	after, err := meter.read(ctx)
	if err != nil {
		return r, err
	}
	due, err := d.due(ctx)
	if err != nil {
		return r, err
	}
	r.Seed, r.Messages, r.Bursts, r.Refused = o.Seed, len(l.acked), l.bursts, l.refused
	r.AckedPerSecond = float64(l.sent.Load()) / length.Seconds()
	r.AckP50, r.AckP99 = milliseconds(quantile(l.acks, 0.5)), milliseconds(quantile(l.acks, 0.99))
	judge.verdict(&r, l.acked, due)
	r.TurnsPerBurst = part(float64(r.Turns), float64(r.Bursts))
	r.IdleTxPerSecond, r.IdleCPUPercent, r.IdleRSSBytes = idle.tx, idle.cpu, before.rss
	if r.Start != nil {
		r.Start.RSSPerWaiting = float64(before.rss-empty) / float64(o.Waiting)
	}
	r.count(after, before)
	if r.Functions, err = d.functions(ctx, float64(max(1, r.Messages))); err != nil {
		return r, err
	}
	return r, ctx.Err()
}

// count turns two readings into what one message cost.
func (r *Report) count(after, before reading) {
	messages := float64(max(1, r.Messages))
	r.TxPerMessage = float64(after.tx-before.tx) / messages
	r.RowsPerMessage = float64(after.rows-before.rows) / messages
	r.WALBytesPerMessage = float64(after.wal-before.wal) / messages
	r.MessagesPerCommit = part(float64(r.Messages), float64(after.pushes-before.pushes))
	r.RSSBytes, r.RSSPeakBytes = after.rss, after.peak
	r.ServiceCPUPerThousand = (after.service - before.service).Seconds() * 1000 / messages
	r.OwnCPUPerThousand = (after.own - before.own).Seconds() * 1000 / messages
	if before.server >= 0 && after.server >= before.server {
		cost := (after.server - before.server).Seconds() * 1000 / messages
		r.ServerCPUPerThousand = &cost
	}
}

// reading is the state of all counters at one moment.
type reading struct {
	tx, rows, wal, pushes int64
	rss, peak             int64
	service, server, own  time.Duration
}

// idleness is what the service does while nobody wants anything of it.
type idleness struct{ tx, cpu float64 }

// meter reads the counters of the database, the service and ourselves.
type meter struct {
	o        Options
	database *database
	pid      int
}

// rest watches the service doing nothing, and returns where the counters stand then.
func (m meter) rest(ctx context.Context) (reading, idleness, error) {
	pause(ctx, flushed)
	first, err := m.read(ctx)
	if err != nil {
		return first, idleness{}, err
	}
	started := time.Now()
	m.o.Progress("idle", 0)
	pause(ctx, idleFor)
	second, err := m.read(ctx)
	took := time.Since(started).Seconds()
	// The reading itself is one transaction.
	return second, idleness{tx: float64(max(0, second.tx-first.tx-1)) / took, cpu: 100 * (second.service - first.service).Seconds() / took}, err
}

func (m meter) read(ctx context.Context) (r reading, err error) {
	if err := m.database.conn.QueryRow(ctx, statement.Named("bench_counters")).Scan(&r.tx, &r.rows, &r.wal, &r.pushes); err != nil {
		return r, fmt.Errorf("read the counters: %w", err)
	}
	r.rss, r.peak, r.service = residentBytes(m.pid), peakBytes(m.pid), cpu(m.pid)
	r.own, r.server = cpu(os.Getpid()), -1
	if m.o.Postmaster > 0 {
		r.server = cpuOfAll(m.o.Postmaster)
	}
	return r, nil
}

// residentBytes and peakBytes are VmRSS and VmHWM; 0 where there is no /proc.
func residentBytes(pid int) int64 { return statusBytes(pid, "VmRSS:") }

func peakBytes(pid int) int64 { return statusBytes(pid, "VmHWM:") }

func statusBytes(pid int, name string) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// cpu is the time that a process and its ended children have computed; 0 where there is no /proc. Linux counts in hundredths.
func cpu(pid int) time.Duration {
	fields := stat(pid)
	if len(fields) < 15 {
		return 0
	}
	ticks := int64(0)
	for _, field := range fields[11:15] {
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// stat is /proc/PID/stat behind the name, which may hold anything: state, parent, …
func stat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}

// cpuOfAll is that of a server with all its processes.
func cpuOfAll(postmaster int) time.Duration {
	total := cpu(postmaster)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return total
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := stat(pid); len(fields) > 1 && fields[1] == strconv.Itoa(postmaster) {
			total += cpu(pid)
		}
	}
	return total
}

// database is one that only this run uses, or a schema of another one.
type database struct {
	url    string
	name   string
	schema bool
	server string
	conn   *pgx.Conn
}

// hold takes a snapshot and keeps it until release.
func (d *database) hold(ctx context.Context) (release func(), err error) {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return nil, fmt.Errorf("hold a snapshot: %w", err)
	}
	release = func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err == nil {
		// The first statement takes it.
		_, err = tx.Exec(ctx, statement.Named("clock"))
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("hold a snapshot: %w", err)
	}
	return release, nil
}

// functions is what of the server's time each message took.
func (d *database) functions(ctx context.Context, messages float64) ([]Function, error) {
	rows, err := d.conn.Query(ctx, statement.Named("bench_functions"))
	if err != nil {
		return nil, fmt.Errorf("read the functions: %w", err)
	}
	all := []Function{}
	var name string
	var calls int64
	var spent float64
	_, err = pgx.ForEachRow(rows, []any{&name, &calls, &spent}, func() error {
		all = append(all, Function{name, float64(calls) / messages, spent * 1000 / messages})
		return nil
	})
	return all, err
}

// due is when each turn's burst was due.
func (d *database) due(ctx context.Context) (map[int64]time.Time, error) {
	rows, err := d.conn.Query(ctx, statement.Named("bench_due"))
	if err != nil {
		return nil, fmt.Errorf("read the turns: %w", err)
	}
	due := map[int64]time.Time{}
	var id int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error { due[id] = at; return nil })
	return due, err
}
