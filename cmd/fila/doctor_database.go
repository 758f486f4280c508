package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

const (
	// oldestServer is the oldest Postgres that is supported, as server_version_num has it.
	oldestServer = 140000
	// clockTolerance is by how much our clock and the database's may differ before the logs of both are hard to read together.
	clockTolerance = 2 * time.Second
	// oldSnapshot is how long a transaction may keep vacuum from its work before the small hot tables get slow.
	oldSnapshot = 10 * time.Minute
	// oldTransactions is the same for what has no time of its own, in transactions.
	oldTransactions = 1_000_000
	// unreadLog is how much of the write-ahead log a slot that nobody reads may keep.
	unreadLog = 1 << 30
	// locksEach is what one partition of the queue costs a query on the whole of it: itself and its two indexes.
	locksEach = 3
	// lostLook is how many of the newest messages are looked at.
	lostLook = 20000
	// examination bounds each question: a database that is in trouble must not keep the others from being asked.
	examination = 10 * time.Second
)

// server is what the database says of itself.
type server struct {
	number            int
	version           string
	writable          bool
	synchronous, sync string
	fullPages         string
	clock             float64
	vacuum            string
	room, used        int
	locks             int
	pid               uint32
}

// examineDatabase looks at the server, then at its schema, then at the work; each only if the one before was there.
func examineDatabase(ctx context.Context, url string, found *checkup) {
	pool, err := postgres.Open(ctx, postgres.Options{URL: url, MaxConns: 2, Name: "fila doctor"})
	if err != nil {
		found.add(failing, "database", "%s", joined(err))
		return
	}
	defer pool.Close()
	d := database{pool: pool, found: found}
	s, ok := d.server(ctx)
	if !ok {
		return
	}
	d.pooler(ctx)
	d.snapshot(ctx)
	d.space(ctx)
	if examineSchema(ctx, url, found) {
		d.tables(ctx, s)
		d.work(ctx)
		d.lost(ctx)
	}
}

// database is what is examined, and where the findings go.
type database struct {
	pool  *postgres.Pool
	found *checkup
}

// ask runs one statement with a time of its own. Where it fails, that is the finding.
func (d database) ask(ctx context.Context, subject, name string, arguments []any, into ...any) bool {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
	if err := d.pool.QueryRow(ctx, statement.Named(name), arguments...).Scan(into...); err != nil {
		d.found.add(failing, subject, "%s", joined(err))
		return false
	}
	return true
}

func (d database) server(ctx context.Context) (s server, ok bool) {
	asked := time.Now()
	ok = d.ask(ctx, "database", "doctor_server", nil,
		&s.number, &s.version, &s.writable, &s.synchronous, &s.sync, &s.fullPages, &s.clock, &s.vacuum, &s.room, &s.used, &s.locks, &s.pid)
	if ok {
		s.report(d.found, asked, time.Now())
	}
	return s, ok
}

func (s server) report(found *checkup, asked, answered time.Time) {
	if s.number < oldestServer {
		found.add(failing, "database", "Postgres %s is too old: use 14 or newer", s.version)
	} else {
		found.add(fine, "database", "Postgres %s answers; this is fila %s", s.version, thisBuild().Version)
	}
	if s.writable {
		found.add(fine, "database", "it can be written to")
	} else {
		found.add(failing, "database", "it is read-only: name the primary in FILA_DATABASE_URL, several hosts with target_session_attrs=read-write")
	}
	s.reportDurability(found)
	if off := s.clockDifference(asked, answered); off > clockTolerance {
		found.add(warning, "clock", "ours and the database's differ by %s: run a time service (NTP) on both machines; every decision goes by the database's", age(off))
	} else {
		found.add(fine, "clock", "ours and the database's agree")
	}
	const instance = arriveConns + runConns + keepConns
	if s.room-s.used < instance {
		found.add(warning, "connections", "%d of %d are free, and an instance takes up to %d: raise max_connections, or put pgbouncer in front", max(0, s.room-s.used), s.room, instance)
	} else {
		found.add(fine, "connections", "%d of %d are free, an instance takes up to %d", s.room-s.used, s.room, instance)
	}
}

func (s server) reportDurability(found *checkup) {
	switch {
	case s.sync == "off":
		found.add(failing, "durability", "fsync is off: a crash of the machine loses or ruins accepted messages; set it to on")
	case s.fullPages == "off":
		found.add(failing, "durability", "full_page_writes is off: a crash of the machine may ruin tables; set it to on")
	case s.synchronous == "off":
		found.add(failing, "durability", "synchronous_commit is off: a crash loses accepted messages; set it to on, in the server or for the role")
	case s.synchronous == "local":
		found.add(warning, "durability", "synchronous_commit is local: a failover loses accepted messages that no standby has; set it to on")
	default:
		found.add(fine, "durability", "a commit is on disk when it is answered (synchronous_commit %s)", s.synchronous)
	}
	if s.vacuum == "off" {
		found.add(failing, "vacuum", "autovacuum is off: the queue gets slower with every message that passed through; set it to on")
	}
}

// clockDifference is how far the database's time lies outside of the moments between which it was asked.
func (s server) clockDifference(asked, answered time.Time) time.Duration {
	whole, fraction := math.Modf(s.clock)
	theirs := time.Unix(int64(whole), int64(fraction*1e9))
	return max(asked.Sub(theirs), theirs.Sub(answered), 0)
}

// pooler tells what stands in front of the server. A pooler makes up the process id that it tells a client; one in transaction mode
// lends an idle client's server connection to the next.
func (d database) pooler(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
	one, err := d.pool.Acquire(ctx)
	if err != nil {
		d.found.add(failing, "pooler", "%s", joined(err))
		return
	}
	defer one.Release()
	other, err := d.pool.Acquire(ctx)
	if err != nil {
		d.found.add(failing, "pooler", "%s", joined(err))
		return
	}
	defer other.Release()
	first, err := value[uint32](ctx, one, "doctor_pooler")
	if err == nil && first == one.Conn().PgConn().PID() {
		d.found.add(fine, "pooler", "none between us and the server")
		return
	}
	second := uint32(0)
	if err == nil {
		second, err = value[uint32](ctx, other, "doctor_pooler")
	}
	mode := one.Conn().Config().DefaultQueryExecMode
	switch {
	case err != nil:
		d.found.add(failing, "pooler", "%s", joined(err))
	case second != first:
		d.found.add(fine, "pooler", "there is one; sessions keep their server connection")
	case mode == pgx.QueryExecModeCacheStatement:
		d.found.add(warning, "pooler", "it is in transaction mode, and the URL asks for prepared statements: remove default_query_exec_mode, or set max_prepared_statements in pgbouncer 1.21 or newer")
	default:
		d.found.add(fine, "pooler", "there is one in transaction mode, which fila can work with; what a role needs is set with ALTER ROLE, not in the URL")
	}
}

// snapshot looks for who keeps dead rows alive.
func (d database) snapshot(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
	var holder string
	var seconds float64
	var transactions int64
	err := d.pool.QueryRow(ctx, statement.Named("doctor_snapshot")).Scan(&holder, &seconds, &transactions)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		d.found.add(failing, "vacuum", "%s", joined(err))
		return
	}
	reportSnapshot(d.found, holder, time.Duration(seconds*float64(time.Second)), transactions)
}

func reportSnapshot(found *checkup, holder string, old time.Duration, transactions int64) {
	if old < oldSnapshot && transactions < oldTransactions {
		found.add(fine, "vacuum", "nobody holds an old snapshot")
		return
	}
	found.add(warning, "vacuum", "%s keeps dead rows for %s and %d transactions: end it, and set idle_in_transaction_session_timeout", holder, age(old), transactions)
}

// space tells what can be known of the disk.
func (d database) space(ctx context.Context) {
	var whole, biggest string
	var unread int64
	if !d.ask(ctx, "disk", "doctor_space", nil, &whole, &biggest, &unread) {
		return
	}
	if unread > unreadLog {
		d.found.add(warning, "disk", "a replication slot that nobody reads keeps %d MiB of write-ahead log: drop it, or set max_slot_wal_keep_size", unread>>20)
	}
	text := fmt.Sprintf("the database takes %s (biggest table: %s)", whole, biggest)
	var local syscall.Statfs_t
	if syscall.Statfs(privateFolder, &local) != nil {
		d.found.add(fine, "disk", "%s; watch the free space of its machine, which cannot be seen from here", text)
		return
	}
	free := float64(local.Bavail) / float64(max(1, local.Blocks))
	if free < 0.1 {
		d.found.add(warning, "disk", "%s, and %.0f %% of the disk of %s are free: make room, a full disk stops the service", text, 100*free, privateFolder)
		return
	}
	d.found.add(fine, "disk", "%s, %.0f %% of the disk of %s are free", text, 100*free, privateFolder)
}

// examineSchema says whether the schema can be worked with.
func examineSchema(ctx context.Context, url string, found *checkup) bool {
	list, err := postgres.Migrations(ctx, url)
	if err != nil {
		found.add(failing, "schema", "%s", joined(err))
		return false
	}
	missing := int64(0)
	for _, m := range list {
		if !m.Applied {
			missing++
		}
	}
	found.count(missing, failing, "schema", "missing of its migrations: run fila migrate", "up to date")
	return missing == 0
}

func (d database) tables(ctx context.Context, s server) {
	var without string
	var partitions int
	if !d.ask(ctx, "schema", "doctor_tables", nil, &without, &partitions) {
		return
	}
	if without != "" {
		d.found.add(failing, "vacuum", "autovacuum is off for %s: ALTER TABLE … RESET (autovacuum_enabled)", without)
	}
	// Some sessions ask about every project at once: the overview, the metrics, the sweep.
	if need := locksEach * partitions * 8; need > s.locks {
		d.found.add(warning, "locks", "the lock table has room for %d, and %d projects may need %d: raise max_locks_per_transaction", s.locks, partitions, need)
	} else {
		d.found.add(fine, "locks", "the lock table has room for %d, %d projects may need %d", s.locks, partitions, need)
	}
}

func (d database) work(ctx context.Context) {
	var stuck, foreign, unknown, behind, dead, suspended int64
	if !d.ask(ctx, "queue", "doctor_queue", nil, &stuck, &foreign, &unknown, &behind, &dead, &suspended) {
		return
	}
	found := d.found
	found.count(stuck, failing, "turns", "left by an instance that is gone, and taken over by nobody: start fila serve", "none is without an owner")
	found.count(foreign, failing, "queue", "inserted by other programs and not taken up: start fila serve with their project in the configuration", "rows of other programs are taken up")
	found.count(unknown, warning, "turns", "unknown, for a person to say what came of them: fila turns --state unknown lists them, fila turns resolve settles one", "none waits for a person")
	found.count(behind, warning, "conversations", "have messages behind a turn that is unknown: resolve it, they wait for that", "none waits behind an unknown turn")
	found.count(dead, warning, "turns", "dead: fila dead list shows them; redrive or discard each", "none is dead")
	found.count(suspended, warning, "conversations", "suspended since a turn died (on_dead: suspend): redrive or discard it, then fila conversation resume", "none is suspended by a dead turn")
}

func (d database) lost(ctx context.Context) {
	var lost, looked int64
	if d.ask(ctx, "messages", "doctor_lost", []any{lostLook}, &lost, &looked) {
		d.found.count(lost, failing, "messages", "accepted and in no fate: SELECT * FROM fila_lost names them; a person must answer",
			fmt.Sprintf("every accepted message is in its place (the newest %d were looked at)", looked))
	}
}
