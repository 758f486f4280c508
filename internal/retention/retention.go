// Package retention lets rows go when they are as old as their project says. Every serving instance runs one Forgetter; the
// database lets one of them work at a time.
package retention

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/postgres"
)

// Classes of rows, as metrics and logs name them.
const (
	Turns         = "turns"
	Dead          = "dead"
	Receipts      = "receipts"
	Erased        = "erased"
	Conversations = "conversations"
)

// Options of a Forgetter.
type Options struct {
	Pool *postgres.Pool
	// Every is the time between two rounds; 15 minutes if 0. Rows are kept for days, so they outlive their time by little.
	Every time.Duration
	// Page is how many rows one transaction looks at; 1000 if 0.
	Page int
	// Forgot hears how many rows of a class went.
	Forgot func(class string, rows int64)
	Log    zerolog.Logger
}

// conversationPages is how many pages of conversations one round looks through; the next one goes on from there. Every one of
// them is looked up in three tables, and hardly any is idle.
const conversationPages = 50

// share of one connection's time that a round may take, so that serving goes on beside it: a fifth.
const share = 5

// Forgetter deletes what is too old, page by page.
type Forgetter struct {
	o             Options
	conversations conversationWalk
}

// New makes a Forgetter.
func New(o Options) *Forgetter {
	if o.Every == 0 {
		o.Every = 15 * time.Minute
	}
	if o.Page == 0 {
		o.Page = 1000
	}
	return &Forgetter{o: o}
}

// Run makes a round now and then one after every Options.Every, until ctx ends.
func (f *Forgetter) Run(ctx context.Context) error {
	ticker := time.NewTicker(f.o.Every)
	defer ticker.Stop()
	for {
		f.Round(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Round lets go, in every class, of what is too old. Turns go before receipts, and conversations last: only those of which
// nothing is left go. A page that fails ends its way for this round, and no other project's; the next one begins anew. Where another
// instance is met at work the round is left to it: of those that began together the last one goes on.
func (f *Forgetter) Round(ctx context.Context) {
	projects, err := f.projects(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.o.Log.Warn().Str("error", postgres.Safe(err)).Msg("projects not listed, no old rows deleted, tried again in the next round")
		}
		return
	}
	for _, class := range []struct {
		name  string
		pages int // at most, in one round
		walks []walk
	}{
		{Dead, math.MaxInt, turnWalks(projects, true)},
		{Turns, math.MaxInt, turnWalks(projects, false)},
		{Receipts, math.MaxInt, []walk{&receiptWalk{}}},
		{Erased, math.MaxInt, []walk{erasedWalk{}}},
		{Conversations, conversationPages, []walk{&f.conversations}},
	} {
		if elsewhere := f.class(ctx, class.name, class.walks, class.pages); elsewhere {
			return
		}
	}
}

// class goes all ways of one class, and tells how many rows went.
func (f *Forgetter) class(ctx context.Context, name string, walks []walk, pages int) (elsewhere bool) {
	all := int64(0)
	for _, w := range walks {
		gone, err := f.walk(ctx, w, pages)
		all += gone
		if elsewhere = errors.Is(err, errElsewhere); elsewhere {
			break
		} else if err != nil {
			f.failed(ctx, name, err)
		}
	}
	if all > 0 {
		f.o.Forgot(name, all)
		f.o.Log.Info().Str("class", name).Int64("rows", all).Msg("deleted for their age")
	}
	return elsewhere
}

// walk goes through the pages of one walk, and rests after each in proportion to what it took.
func (f *Forgetter) walk(ctx context.Context, w walk, pages int) (gone int64, err error) {
	for more := true; more && pages > 0; pages-- {
		started := time.Now()
		var n int64
		if n, more, err = w.page(ctx, f.o.Pool, f.o.Page); err != nil {
			return gone, err
		}
		gone += n
		select {
		case <-time.After((share - 1) * time.Since(started)):
		case <-ctx.Done():
			return gone, nil
		}
	}
	return gone, nil
}

func (f *Forgetter) failed(ctx context.Context, class string, err error) {
	if ctx.Err() == nil {
		f.o.Log.Warn().Str("class", class).Str("error", postgres.Safe(err)).Msg("old rows not deleted, tried again in the next round")
	}
}
