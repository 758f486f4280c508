package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"fila/internal/bench"
)

func writeReport(w io.Writer, p palette, o bench.Options, r bench.Report) {
	load := fmt.Sprintf("%g messages/s", o.Rate)
	if o.Rate == 0 {
		load = fmt.Sprintf("%d callers, as fast as it goes", bench.Clients)
	}
	fmt.Fprintf(w, "%s for %s, bursts of %d, window %s, seed %d\n", load, o.Length, o.Burst, o.Window, r.Seed)
	section(w, p, "what came of it")
	figure(w, "acknowledged", "%.0f messages/s (%d in all, %d sent again after a refusal)", r.AckedPerSecond, r.Messages, r.Refused)
	figure(w, "acknowledged in", "p50 %.2f ms, p99 %.2f ms", r.AckP50, r.AckP99)
	figure(w, "turns", "%d of %d bursts: %.3f a burst", r.Turns, r.Bursts, r.TurnsPerBurst)
	figure(w, "lateness", "p50 %.2f ms, p99 %.2f ms, max %.2f ms", r.LatenessP50, r.LatenessP99, r.LatenessMax)
	figure(w, "faults", "lost %d, doubled %d, out of order %d, overlapped %d, early %d, undelivered %d", r.Lost, r.Duplicated, r.OutOfOrder, r.Overlapped, r.Early, r.Undelivered)
	figure(w, "last answer", "%.2f s after the last message", r.SettleSeconds)
	section(w, p, "what it cost")
	figure(w, "a message", "%.2f transactions, %.2f rows, %.0f bytes of write-ahead log, %.1f messages a commit", r.TxPerMessage, r.RowsPerMessage, r.WALBytesPerMessage, r.MessagesPerCommit)
	server := "unknown"
	if r.ServerCPUPerThousand != nil {
		server = fmt.Sprintf("%.3f s", *r.ServerCPUPerThousand)
	}
	figure(w, "CPU of 1,000", "service %.3f s, Postgres %s, generator %.3f s", r.ServiceCPUPerThousand, server, r.OwnCPUPerThousand)
	figure(w, "memory", "%s, at most %s", mebibytes(r.RSSBytes), mebibytes(r.RSSPeakBytes))
	for _, f := range r.Functions {
		if f.Microseconds >= 1 {
			figure(w, "  "+f.Name, "%.1f us a message, %.2f calls", f.Microseconds, f.Calls)
		}
	}
	figure(w, "at rest", "%.1f transactions/s, %.1f %% of a processor, %s", r.IdleTxPerSecond, r.IdleCPUPercent, mebibytes(r.IdleRSSBytes))
	if r.Start != nil {
		section(w, p, fmt.Sprintf("the start with %d waiting", o.Waiting))
		figure(w, "after", "ready %.2f s, overdue turn asked %.2f s, all timers %.2f s", r.Start.Ready, r.Start.FirstCall, r.Start.Timers)
		figure(w, "memory", "%.0f bytes a waiting conversation", r.Start.RSSPerWaiting)
	}
	if r.Baseline == nil {
		return
	}
	section(w, p, "beside it on this machine")
	figure(w, r.Baseline.PgbenchBy, "%.0f rows/s one by one, %.0f bytes of write-ahead log each", r.Baseline.PgbenchTPS, r.Baseline.PgbenchWALBytes)
	figure(w, "no-op", "%.0f requests/s", r.Baseline.EchoRPS)
	figure(w, "sleeping design", "%.0f messages/s, acknowledged in p50 %.2f ms", r.Baseline.SleeperAckedPerSecond, r.Baseline.SleeperAckP50)
	section(w, p, "ratios")
	figure(w, "acknowledged", "%.2f of pgbench, %.2f of the no-op, %.2f of the sleeping design", r.Ratio.AckedToPgbench, r.Ratio.AckedToEcho, r.Ratio.AckedToSleeper)
	figure(w, "ack p50", "%.2f of the sleeping design's", r.Ratio.AckToSleeper)
	figure(w, "lateness", "p50 %.2f of ack p50, p99 %.2f of ack p99", r.Ratio.LatenessToAck, r.Ratio.LatenessToAck99)
	figure(w, "write-ahead log", "%.2f of pgbench's row", r.Ratio.WALToPgbench)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func figure(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "  %-18s %s\n", name, fmt.Sprintf(format, args...))
}

// stages tells on a terminal what a long command is doing.
type stages struct {
	mu   sync.Mutex
	out  io.Writer
	last time.Time
}

func newStages(out io.Writer) *stages { return &stages{out: out} }

func (s *stages) at(doing string, done float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isTerminal(s.out) || time.Since(s.last) < 100*time.Millisecond {
		return
	}
	s.last = time.Now()
	const width = 30
	full := max(0, min(width, int(done*width)))
	fmt.Fprintf(s.out, "\r\x1b[K%-9s [%-*s]", doing, width, "##############################"[:full])
}

func (s *stages) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isTerminal(s.out) {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}
