package retention_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"fila/internal/retention"
)

// TestAFleetKeepsUp lets instances tick at the same moment. Whoever meets another one at work leaves the round to it, and one of
// them goes through all of it.
func TestAFleetKeepsUp(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`SELECT fila_open_project('other', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`)
	c.keep("clinic", 2000)
	c.pass(31)
	var fleet sync.WaitGroup
	for range 3 {
		f := retention.New(retention.Options{Pool: c.pool, Page: 10, Forgot: func(string, int64) {}, Log: zerolog.Nop()})
		fleet.Go(func() { f.Round(t.Context()) })
	}
	fleet.Wait()
	for _, table := range []string{"turns", "receipts", "erased_receipts"} {
		c.count(table, 0)
	}
	// One round looks at 50 pages of them, and whoever left may have looked at some.
	c.want("the first conversations", 0, `SELECT count(*) FROM conversations WHERE phone <= '000500'`)
}

// TestACallInFlightKeepsItsTurn discards a turn whose call still runs, in a project that keeps no turn for any time.
func TestACallInFlightOutlivesItsTurn(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`UPDATE projects SET keep_turns = '0'`)
	c.push("m1", ana)
	turn := c.drain(ana)
	c.exec(`SELECT fila_discard($1, 'ana', 'wrong number')`, turn)
	c.push("m2", ana)
	c.forget()
	if got := c.text(`SELECT verdict FROM fila_drain('clinic', ARRAY[$1], 'here', 30)`, ana); got != "hanging_up" {
		t.Errorf("the next turn beside the call: %s", got)
	}
	c.exec(`SELECT fila_hung_up($1, 1)`, turn)
	c.forget()
	c.count(fmt.Sprintf("turns WHERE id = %d", turn), 0)
	if c.drain(ana) == 0 {
		t.Error("no next turn")
	}
}
