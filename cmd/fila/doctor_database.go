package main

import (
	"context"
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
)

// server is what the database says of itself.
type server struct {
	number            int
	version           string
	writable          bool
	synchronous, sync string
	clock             float64
}

// examineDatabase looks at the server, then at its schema, then at the work; each only if the one before was there.
func examineDatabase(ctx context.Context, url string, found *checkup) {
	pool, err := postgres.Open(ctx, postgres.Options{URL: url, MaxConns: 2, Name: "fila doctor"})
	if err != nil {
		found.add(failing, "database", "%s", joined(err))
		return
	}
	defer pool.Close()
	var s server
	asked := time.Now()
	err = pool.QueryRow(ctx, statement.Named("doctor_server")).Scan(&s.number, &s.version, &s.writable, &s.synchronous, &s.sync, &s.clock)
	if err != nil {
		found.add(failing, "database", "%s", joined(err))
		return
	}
	s.report(found, asked, time.Now())
	if examineSchema(ctx, url, found) {
		examineWork(ctx, pool, found)
	}
}

func (s server) report(found *checkup, asked, answered time.Time) {
	if s.number < oldestServer {
		found.add(failing, "database", "Postgres %s is too old: use 14 or newer", s.version)
	} else {
		found.add(fine, "database", "Postgres %s answers", s.version)
	}
	if s.writable {
		found.add(fine, "database", "it can be written to")
	} else {
		found.add(failing, "database", "it is read-only: name the primary in FILA_DATABASE_URL, several hosts with target_session_attrs=read-write")
	}
	switch {
	case s.sync == "off":
		found.add(failing, "durability", "fsync is off: a crash of the machine loses or ruins accepted messages; set it to on")
	case s.synchronous == "off":
		found.add(failing, "durability", "synchronous_commit is off: a crash loses accepted messages; set it to on, in the server or for the role")
	case s.synchronous == "local":
		found.add(warning, "durability", "synchronous_commit is local: a failover loses accepted messages that no standby has; set it to on")
	default:
		found.add(fine, "durability", "a commit is on disk when it is answered (synchronous_commit %s)", s.synchronous)
	}
	if off := s.clockDifference(asked, answered); off > clockTolerance {
		found.add(warning, "clock", "ours and the database's differ by %s: run a time service (NTP) on both machines; every decision goes by the database's", age(off))
	} else {
		found.add(fine, "clock", "ours and the database's agree")
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

func examineWork(ctx context.Context, pool *postgres.Pool, found *checkup) {
	var stuck, foreign, lost, unknown, dead int64
	if err := pool.QueryRow(ctx, statement.Named("doctor_queue")).Scan(&stuck, &foreign, &lost, &unknown, &dead); err != nil {
		found.add(failing, "queue", "%s", joined(err))
		return
	}
	found.count(lost, failing, "messages", "accepted and in no fate: SELECT * FROM fila_lost names them; a person must answer", "every accepted message is in its place")
	found.count(stuck, failing, "turns", "left by an instance that is gone, and taken over by nobody: start fila serve", "none is without an owner")
	found.count(foreign, failing, "queue", "inserted by other programs and not taken up: start fila serve with their project in the configuration", "rows of other programs are taken up")
	found.count(unknown, warning, "turns", "unknown, for a person to say what came of them: fila turns --state unknown lists them", "none waits for a person")
	found.count(dead, warning, "turns", "dead: fila dead list shows them; redrive or discard each", "none is dead")
}
