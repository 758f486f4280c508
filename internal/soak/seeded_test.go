package soak_test

import (
	"os"
	"slices"
	"testing"
	"time"
)

// TestSoakCatchesFaults breaks the service in one place each and wants the judge to notice, by name. One after the other: each
// run needs the machine for itself.
func TestSoakCatchesFaults(t *testing.T) { //nolint:paralleltest // see above
	if os.Getenv("FILA_SOAK_SEEDED") == "" {
		t.Skip("takes minutes; FILA_SOAK_SEEDED=1 runs it")
	}
	length := 20 * time.Second
	if os.Getenv("FILA_SOAK_SECONDS") != "" {
		length = seconds(t, "FILA_SOAK_SECONDS", 0)
	}
	for _, tt := range []struct { //nolint:paralleltest // see above
		fault string
		// broken are the invariants of which at least one must be found broken.
		broken []string
		// rare says that the fault shows only when an old answer comes in late: its run is longer.
		rare bool
	}{
		{"callback_beside_call", []string{"one turn"}, true},
		{"claim_leased", []string{"fence", "one turn"}, false},
		{"claim_same_attempt", []string{"fence"}, false},
		{"drain_beside_open", []string{"one turn"}, false},
		{"drain_do_nothing", []string{"kept"}, false},
		{"drain_early", []string{"window"}, false},
		{"drain_whatever_mode", []string{"silence"}, false},
		{"push_forgets", []string{"not doubled"}, false},
		{"reply_unfenced", []string{"fence", "one reply", "parts"}, true},
		{"send_without_intent", []string{"parts"}, false},
		{"supersede_forgets", []string{"kept"}, false},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			o := fromEnvironment(t)
			o.fault, o.length = tt.fault, length
			if tt.rare {
				o.length = 3 * length
			}
			report, _ := begin(t, o).run()
			if !slices.ContainsFunc(report.Broken(), func(name string) bool { return slices.Contains(tt.broken, name) }) {
				t.Errorf("seed %d: broken %v, want one of %v", o.seed, report.Broken(), tt.broken)
			}
			t.Logf("broken: %v; first: %v", report.Broken(), report.Violations[:min(1, len(report.Violations))])
		})
	}
}
