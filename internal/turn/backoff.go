package turn

import "time"

// Backoff says how often and how fast a failure is tried again.
type Backoff struct {
	// Attempts is how many failures of one stage end the turn.
	Attempts int
	// Min and Max bound the pause.
	Min, Max time.Duration
}

// Exhausted tells whether the given number of failures, this one included, was the last one allowed.
func (b Backoff) Exhausted(failures int) bool { return failures >= b.Attempts }

// Delay is the pause after the given number of failures, counted from 1: it doubles from Min up to Max, and random, in
// [0, 1), adds up to a quarter, so that turns that failed together do not come back together. With Min 1 s and Max 60 s:
// 1, 2, 4, 8, 16, 32, 60 s.
func (b Backoff) Delay(failures int, random float64) time.Duration {
	delay := b.Min
	for i := 1; i < failures && delay < b.Max; i++ {
		delay *= 2
	}
	delay += time.Duration(float64(delay) * random / 4)
	return max(b.Min, min(delay, b.Max))
}
