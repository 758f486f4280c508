package turn_test

import (
	"testing"
	"time"

	"fila/internal/turn"
)

func TestBackoffDelay(t *testing.T) {
	t.Parallel()
	usual := turn.Backoff{Attempts: 3, Min: time.Second, Max: time.Minute}
	tests := map[string]struct {
		backoff  turn.Backoff
		failures int
		random   float64
		want     time.Duration
	}{
		"first":              {usual, 1, 0, time.Second},
		"second":             {usual, 2, 0, 2 * time.Second},
		"sixth":              {usual, 6, 0, 32 * time.Second},
		"at the ceiling":     {usual, 7, 0, time.Minute},
		"far beyond":         {usual, 1000, 0.99, time.Minute},
		"a quarter more":     {usual, 3, 1, 5 * time.Second},
		"half a quarter":     {usual, 1, 0.5, 1125 * time.Millisecond},
		"none counted yet":   {usual, 0, 0, time.Second},
		"no room to grow":    {turn.Backoff{Min: time.Second, Max: time.Second}, 5, 0.9, time.Second},
		"at once, and again": {turn.Backoff{}, 4, 0.9, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.backoff.Delay(test.failures, test.random); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestBackoffExhausted(t *testing.T) {
	t.Parallel()
	three := turn.Backoff{Attempts: 3}
	for failures, want := range []bool{false, false, false, true, true} {
		if got := three.Exhausted(failures); got != want {
			t.Errorf("after %d failures: %t, want %t", failures, got, want)
		}
	}
}
