package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"fila/internal/postgres"
	statement "fila/sql"
)

const (
	// oldestServer is the oldest Postgres that is supported, as server_version_num has it.
	oldestServer = 140000
	// clockTolerance is by how much our clock and the database's may differ before the logs of both are hard to read together.
	clockTolerance = 2 * time.Second
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
}

// examineDatabase looks at the server, then at its schema, then at the work, which there is only with a schema.
func examineDatabase(ctx context.Context, url string, found *checkup) {
	pool, err := postgres.Open(ctx, postgres.Options{URL: url, MaxConns: 2, Name: "fila doctor"})
	if err != nil {
		found.add(failing, "database", "%s", joined(err))
		return
	}
	defer pool.Close()
	d := database{pool: pool, found: found}
	s, ok := d.server(ctx)
	if !ok && !d.answers(ctx) {
		return
	}
	d.pooler(ctx)
	d.snapshot(ctx)
	d.space(ctx)
	d.log(ctx)
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

// answers tells whether there is any use in asking on.
func (d database) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
	return d.pool.Ping(ctx) == nil
}

func (d database) server(ctx context.Context) (s server, ok bool) {
	asked := time.Now()
	ok = d.ask(ctx, "database", "doctor_server", nil,
		&s.number, &s.version, &s.writable, &s.synchronous, &s.sync, &s.fullPages, &s.clock, &s.vacuum, &s.room, &s.used, &s.locks)
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
		found.add(failing, "vacuum", "autovacuum is off: the queue gets slower with every message that passed through; set autovacuum and track_counts to on")
	}
}

// clockDifference is how far the database's time lies outside of the moments between which it was asked.
func (s server) clockDifference(asked, answered time.Time) time.Duration {
	whole, fraction := math.Modf(s.clock)
	theirs := time.Unix(int64(whole), int64(fraction*1e9))
	return max(asked.Sub(theirs), theirs.Sub(answered), 0)
}

// examineSchema says whether the schema can be worked with.
func examineSchema(ctx context.Context, url string, found *checkup) bool {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
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
		d.found.add(failing, "vacuum", "autovacuum is off for %s: ALTER TABLE … RESET (autovacuum_enabled) each", without)
	}
	if s.locks == 0 {
		return // that the server was not asked is a finding already
	}
	// Some sessions ask about every project at once: the overview, the metrics, the sweep.
	if need := locksEach * partitions * 8; need > s.locks {
		d.found.add(warning, "locks", "the lock table has room for %d, and %s may need %d: raise max_locks_per_transaction", s.locks, counted(partitions, "project", "projects"), need)
	} else {
		d.found.add(fine, "locks", "the lock table has room for %d, %s may need %d", s.locks, counted(partitions, "project", "projects"), need)
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
