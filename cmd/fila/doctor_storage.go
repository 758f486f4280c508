package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"fila/internal/postgres"
	statement "fila/sql"
)

const (
	// oldSnapshot is how long a transaction may keep vacuum from its work before the small hot tables get slow.
	oldSnapshot = 10 * time.Minute
	// oldTransactions is the same for what has no time of its own, in transactions.
	oldTransactions = 1_000_000
	// unreadLog is how much of the write-ahead log a slot that nobody reads may keep, in bytes.
	unreadLog = 1 << 30
	// keptLog is by how many times the write-ahead log may outgrow max_wal_size.
	keptLog = 3
)

// holder is who keeps dead rows alive for longest; its name is nil where nobody does.
type holder struct {
	name         *string
	seconds      *float64
	transactions *int64
	// seen: this role sees how long the transactions of other roles have lasted.
	seen bool
}

// snapshot looks for who keeps dead rows alive.
func (d database) snapshot(ctx context.Context) {
	var h holder
	if d.ask(ctx, "vacuum", "doctor_snapshot", nil, &h.seen, &h.name, &h.seconds, &h.transactions) {
		h.report(d.found)
	}
}

func (h holder) report(found *checkup) {
	old, transactions := time.Duration(0), int64(0)
	if h.seconds != nil {
		old = time.Duration(*h.seconds * float64(time.Second))
	}
	if h.transactions != nil {
		transactions = *h.transactions
	}
	switch {
	case old >= oldSnapshot || transactions >= oldTransactions:
		since := ""
		if h.seconds != nil {
			since = age(old) + " and "
		}
		found.add(warning, "vacuum", "%s keeps dead rows for %s%d transactions: end it, and set idle_in_transaction_session_timeout", *h.name, since, transactions)
	case !h.seen:
		found.add(hint, "vacuum", "nobody holds back a million transactions; how long those of other roles last is not shown to this one: GRANT pg_monitor TO it")
	default:
		found.add(fine, "vacuum", "nobody holds an old snapshot")
	}
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
	reportDisk(d.found, privateFolder, fmt.Sprintf("the database takes %s (biggest tables: %s)", whole, biggest))
}

// reportDisk can see the free space of the private Postgres only.
func reportDisk(found *checkup, folder, text string) {
	var local syscall.Statfs_t
	if syscall.Statfs(folder, &local) != nil {
		found.add(fine, "disk", "%s; watch the free space of its machine, which cannot be seen from here", text)
		return
	}
	free := float64(local.Bavail) / float64(max(1, local.Blocks))
	if free < 0.1 {
		found.add(warning, "disk", "%s, and %.0f %% of the disk of %s are free: make room, a full disk stops the service", text, 100*free, folder)
		return
	}
	found.add(fine, "disk", "%s, %.0f %% of the disk of %s are free", text, 100*free, folder)
}

// log tells how big the write-ahead log is, to a role that may know it.
func (d database) log(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
	var size, usual int64
	err := d.pool.QueryRow(ctx, statement.Named("doctor_wal")).Scan(&size, &usual)
	switch {
	case postgres.Code(err) == "42501":
		d.found.add(hint, "disk", "the size of the write-ahead log is not shown to this role: GRANT pg_monitor TO it")
	case err != nil:
		d.found.add(failing, "disk", "%s", joined(err))
	case size > keptLog*usual:
		d.found.add(warning, "disk", "the write-ahead log takes %d MiB, %d times max_wal_size: look for a failing archive_command, a replication slot, wal_keep_size", size>>20, size/max(1, usual))
	default:
		d.found.add(fine, "disk", "the write-ahead log takes %d MiB", size>>20)
	}
}
