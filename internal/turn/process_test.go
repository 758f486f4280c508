package turn_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/turn"
)

// process is one instance of the service, as far as its turns go. It may be killed at any point of any of its runs.
type process struct {
	name   string
	store  *turn.Store
	keeper *turn.Keeper
	runner *turn.Runner
	runs   []*oneRun
	mu     sync.Mutex
}

// oneRun is one run of a turn. It stands still at every point, and inside calls whose answer takes its time, until it is told to
// go on. At any time at most one run moves, and a frozen process is one whose runs are not told.
type oneRun struct {
	process *process
	turn    int64
	attempt int
	phone   string
	// answered says that the turn had its reply when this run began.
	answered bool
	// leased is when its lease was last renewed, in the model's time.
	leased int
	point  string
	// call is the call whose answer it waits for.
	call *heldCall
	over bool
	// dead is the run's own; the others are the test's.
	dead   bool
	moved  chan string
	resume chan bool
}

const (
	// inCall is where a run stands whose call takes its time, ended what one that is over has come to.
	inCall = "in a call"
	ended  = "the end"
)

// patience bounds what takes milliseconds unless something hangs.
const patience = 30 * time.Second

func (m *machine) newProcess() *process {
	m.named++
	p := &process{name: fmt.Sprintf("instance-%d", m.named)}
	p.store = turn.NewStore(m.pool, p.name, leaseSeconds*time.Second)
	p.keeper = turn.NewKeeper(p.store, zerolog.Nop())
	nothing := func(string, string, time.Duration) {}
	p.runner = turn.NewRunner(p.store, p.keeper, turn.Observer{
		Late:        func(string, time.Duration) {},
		AgentCalled: nothing, DeliveryCalled: nothing,
		Ended: func(string, string) {},
		Retry: func(string, time.Duration) {},
	}, zerolog.New(journal{m}))
	standing := map[*turn.Work]*oneRun{}
	p.runner.SetPoint(func(w *turn.Work, point string) {
		p.mu.Lock()
		if standing[w] == nil {
			standing[w] = m.moving
		}
		r := standing[w]
		p.mu.Unlock()
		r.stand(point)
	})
	return p
}

// stand is called by the run at every point.
func (r *oneRun) stand(point string) {
	if r.dead {
		return // its deferred calls pass here as well
	}
	r.moved <- point
	if !<-r.resume {
		r.dead = true
		runtime.Goexit()
	}
}

// begin starts a run and leaves it at its first point.
func (m *machine) begin(p *process, w turn.Work, answered bool) *oneRun {
	r := &oneRun{process: p, turn: w.ID, attempt: w.Attempt, phone: w.Phone, answered: answered, leased: m.model.now, moved: make(chan string), resume: make(chan bool)}
	p.runs = append(p.runs, r)
	m.moving = r
	leased := time.Now()
	go func() {
		defer func() { r.moved <- ended }()
		p.runner.Run(m.ctx, m.project, w, leased)
	}()
	m.await(r)
	return r
}

// advance lets the run pass so many points.
func (m *machine) advance(r *oneRun, points int) {
	for ; points > 0 && !r.over; points-- {
		m.tell(r, true)
	}
}

// advanceTo lets the run go on to the point, or to its end.
func (m *machine) advanceTo(r *oneRun, point string) {
	for !r.over && r.point != point {
		m.tell(r, true)
	}
}

func (m *machine) tell(r *oneRun, goOn bool) {
	m.moving = r
	if r.call != nil {
		close(r.call.answer)
		r.call = nil
		m.await(r)
		if goOn || r.over {
			return
		}
	}
	r.resume <- goOn
	m.await(r)
}

// await comes back when the run stands still again.
func (m *machine) await(r *oneRun) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r.point = <-r.moved:
	case r.call = <-m.outside.held:
		r.point = inCall
	case <-timer.C:
		m.Fatalf("a run hangs behind point %q", r.point)
	}
	m.overhear(r)
	if r.over = r.point == ended; r.over {
		r.process.runs = slices.DeleteFunc(r.process.runs, func(o *oneRun) bool { return o == r })
	}
}

// kill ends the process at once: none of its runs passes another point.
func (m *machine) kill(p *process) {
	for len(p.runs) > 0 {
		m.tell(p.runs[0], false)
	}
	for i := range m.processes {
		if m.processes[i] == p {
			m.processes[i] = m.newProcess()
		}
	}
}

// journal counts what only the log tells.
type journal struct{ machine *machine }

func (j journal) Write(line []byte) (int, error) {
	for _, known := range []struct{ words, event string }{
		{"turn is over or somebody else's", "late writer refused"},
		{"failure of a turn that is no longer ours", "late failure refused"},
		{"its lease is lost", "lease lost"},
	} {
		if bytes.Contains(line, []byte(known.words)) {
			j.machine.event(known.event)
		}
	}
	return len(line), nil
}

func (m *machine) runs() (all []*oneRun) {
	for _, p := range m.processes {
		all = append(all, p.runs...)
	}
	return all
}
