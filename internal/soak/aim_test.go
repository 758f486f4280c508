package soak_test

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// aim hears which process has just taken a turn, or passed the gate: in the moment between that and the call which follows,
// a fault says more than at any other.
type aim struct {
	*soak
	taken chan int // process ids; nobody waits for most of them
}

func newAim(s *soak) *aim { return &aim{soak: s, taken: make(chan int)} }

// listen hears until ctx ends, over a connection of its own that it makes anew whenever Postgres was away.
func (a *aim) listen(ctx context.Context) {
	for pause(ctx, 20*time.Millisecond) {
		a.hear(ctx)
	}
}

func (a *aim) hear(ctx context.Context) {
	conn, err := pgx.Connect(ctx, a.cluster.URL("postgres"))
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN soak_taken"); err != nil {
		return
	}
	for {
		heard, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		pid, err := strconv.Atoi(heard.Payload)
		if err != nil {
			a.Errorf("the process %q is no number", heard.Payload)
			return
		}
		select {
		case a.taken <- pid:
		default:
		}
	}
}

// next is the process that takes a turn next, 0 where none does soon.
func (a *aim) next(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	select {
	case pid := <-a.taken:
		return pid
	case <-ctx.Done():
		return 0
	}
}
