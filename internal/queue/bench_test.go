package queue

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

// BenchmarkPush is what a busy service does: many requests of one message each, on a server that reaches the disk.
func BenchmarkPush(b *testing.B) {
	url := pgtest.Server(b, nil).URL("postgres")
	if _, err := postgres.Migrate(b.Context(), url); err != nil {
		b.Fatal(err)
	}
	c := prepare(b, url, Options{})
	c.options.Log = zerolog.Nop()
	c.start()
	var number atomic.Int64
	commits := func() int {
		return value[int](c, "SELECT count(DISTINCT xmin::text)::integer FROM receipts")
	}
	b.SetParallelism(64)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := number.Add(1)
			if _, err := c.Push(b.Context(), []Message{says("norte", int(n%5000), fmt.Sprint("wamid.", n), "oi, tudo bem?")}); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(b.N)/float64(commits()), "messages/commit")
}
