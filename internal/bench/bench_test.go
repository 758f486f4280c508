package bench

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/pgtest"
)

// program builds fila as it is.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fila")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "fila/cmd/fila").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	server := pgtest.Empty(t)
	o := Options{DatabaseURL: server, Program: program(t), Burst: 3, Window: 200 * time.Millisecond, Length: time.Second, Seed: 7, Projects: 2}
	for name, change := range map[string]func(*Options){
		"open":            func(o *Options) { o.Rate = 100 },
		"closed":          func(*Options) {},
		"in turn":         func(o *Options) { o.Rate, o.Conversations = 30, 30 },
		"crowded":         func(o *Options) { o.Rate, o.Waiting, o.History, o.AgentTakes = 50, 100, 400, 10*time.Millisecond },
		"with a baseline": func(o *Options) { o.Rate, o.Baseline = 50, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			change(&o)
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Messages == 0 || r.Messages != 3*r.Bursts || r.Turns == 0 || r.AckedPerSecond <= 0 || r.AckP50 <= 0 || r.LatenessMax <= 0 || r.TxPerMessage <= 0 || r.WALBytesPerMessage <= 0 || r.RSSBytes == 0 {
				t.Errorf("got %+v", r)
			}
			if r.Lost+r.Duplicated+r.OutOfOrder+r.Overlapped+r.Early+r.Undelivered > 0 {
				t.Errorf("faults: %+v", r)
			}
			if o.Waiting > 0 && (r.Start.Ready <= 0 || r.Start.FirstCall <= 0 || r.Start.Timers <= 0) {
				t.Errorf("start: %+v", r.Start)
			}
			if o.Baseline && (r.Baseline.PgbenchTPS <= 0 || r.Baseline.EchoRPS <= 0 || r.Baseline.SleeperAckedPerSecond <= 0 || r.Ratio.AckedToEcho <= 0) {
				t.Errorf("baseline: %+v", r.Baseline)
			}
		})
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		var left int
		if err := conn.QueryRow(context.Background(), `SELECT count(*) FROM pg_database WHERE datname LIKE 'fila\_bench\_%'`).Scan(&left); err != nil || left > 0 {
			t.Errorf("%d databases are left, %v", left, err)
		}
	})
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	good := Options{DatabaseURL: "postgres://127.0.0.1:1/x", Burst: 4, Window: time.Second, Length: time.Second}
	for want, change := range map[string]func(*Options){
		"a burst of 0":   func(o *Options) { o.Burst = 0 },
		"a rate":         func(o *Options) { o.Rate = -1 },
		"a window":       func(o *Options) { o.Window = time.Hour },
		"a run":          func(o *Options) { o.Length = 0 },
		"conversations":  func(o *Options) { o.Conversations = -1 },
		"not understood": func(o *Options) { o.DatabaseURL = "x" },
	} {
		o := good
		change(&o)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}

// TestTheJudgeSees every fault once.
func TestTheJudgeSees(t *testing.T) {
	t.Parallel()
	j, err := newJudge(0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close(t.Context())
	ask := func(turn int, phone string, ids ...string) {
		t.Helper()
		body := `{"turn_id":"` + strconv.Itoa(turn) + `","phone":"` + phone + `","messages":[{"id":"` + strings.Join(ids, `"},{"id":"`) + `"}]}`
		response, err := http.Post(j.url()+"/agent", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	deliver := func(turn int) {
		t.Helper()
		response, err := http.Post(j.url()+"/delivery", "application/json", strings.NewReader(`{"turn_id":"`+strconv.Itoa(turn)+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	ask(1, "a", "m1", "m2")
	deliver(1)
	ask(2, "b", "n2", "n1") // out of order
	deliver(2)
	deliver(2) // twice
	j.active["c"] = 99
	ask(3, "c", "o1") // beside another
	ask(4, "d", "m2") // in two turns
	deliver(4)
	acked := map[string]bool{"m1": true, "m2": true, "n1": true, "n2": true, "o1": true, "lost": true}
	due := map[int64]time.Time{1: time.Now().Add(time.Hour), 2: time.Now().Add(-time.Hour)}
	var r Report
	j.verdict(&r, acked, due)
	got := []int{r.Turns, r.Lost, r.Duplicated, r.OutOfOrder, r.Overlapped, r.Early, r.Undelivered}
	if want := []int{4, 1, 2, 1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("turns, lost, duplicated, out of order, overlapped, early, undelivered: got %v, want %v", got, want)
	}
	if j.settled(6) || !j.settled(5) {
		t.Error("settled is not what was delivered")
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	all := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(all, q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("the quantile of nothing is not 0")
	}
}
