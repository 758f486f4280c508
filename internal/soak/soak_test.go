// Package soak_test hurts the real service while patients write to it, and asks afterwards whether any promise was broken.
//
// Three processes of the service share one Postgres. An agent and a channel whose memory survives record what reaches them;
// patients send every message until it is acknowledged; now and then a person intervenes. Meanwhile processes are killed,
// frozen and shut down, sessions are cut, and Postgres crashes. What was seen goes to package history, which judges it.
//
// FILA_SOAK_SECONDS is how long it goes on (30), FILA_SOAK_GAP_SECONDS the mean pause between two faults (0.55), FILA_SOAK_SEED
// replays a choice of faults, FILA_SOAK_SEEDED=1 also runs the proof that broken variants are caught, and FILA_SOAK_KEEP names
// a folder that keeps the logs and the history of a run that failed.
package soak_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// long is how many seconds a run must have lasted before the events that make it worth anything are demanded of it.
const long = 30

func TestSoak(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the soak takes half a minute")
	}
	o := fromEnvironment(t)
	t.Logf("seed %d: FILA_SOAK_SEED=%d replays the choice of faults", o.seed, o.seed)
	s := begin(t, o)
	report, tally := s.run()
	t.Log(tally.String())
	for i, v := range report.Violations {
		if i == 50 {
			t.Errorf("and %d more", len(report.Violations)-i)
			break
		}
		t.Error(v)
	}
	if o.length >= long*time.Second {
		if never := tally.never(); len(never) > 0 {
			t.Errorf("the run never met: %s; it proves too little", strings.Join(never, ", "))
		}
	}
}

// options of one run.
type options struct {
	seed   uint64
	length time.Duration
	gap    time.Duration // mean pause between two faults
	// fault is a file of testdata that breaks the service, empty where it is as it should be.
	fault string
}

func fromEnvironment(t *testing.T) options {
	t.Helper()
	seed := rand.Uint64N(1_000_000)
	if text := os.Getenv("FILA_SOAK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FILA_SOAK_SEED=%q: give a whole number", text)
		}
	}
	return options{seed: seed, length: seconds(t, "FILA_SOAK_SECONDS", long), gap: seconds(t, "FILA_SOAK_GAP_SECONDS", 0.55)}
}

func seconds(t *testing.T, variable string, usual float64) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return time.Duration(usual * float64(time.Second))
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		t.Fatalf("%s=%q: give a number of seconds above 0", variable, text)
	}
	return time.Duration(value * float64(time.Second))
}
