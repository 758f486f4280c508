package turn_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"fila/internal/agent"
	"fila/internal/call"
	"fila/internal/conversation"
	"fila/internal/delivery"
	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/queue"
	"fila/internal/turn"
)

// world is what many cases share, one after the other: a database, an agent, a channel.
type world struct {
	pool      *postgres.Pool
	queue     *queue.Queue
	outside   *outside
	transport *call.Transport
	tally     *tally
	// favoured is an action that happens more often than usual.
	favoured string
}

// tally counts what happened over a whole run of cases.
type tally struct {
	mu     sync.Mutex
	events map[string]int
}

func (c *tally) count(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[event]++
}

func newWorld(t testing.TB, counts *tally) *world {
	t.Helper()
	address := pgtest.New(t)
	// The picture is one large statement over tiny tables, which is not worth compiling.
	address += map[bool]string{true: "&", false: "?"}[strings.Contains(address, "?")] + "jit=off"
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: address, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), makePicture); err != nil {
		t.Fatal(err)
	}
	w := &world{pool: pool, outside: newOutside(t), transport: call.NewTransport(), tally: counts}
	t.Cleanup(w.transport.CloseIdleConnections)
	w.queue = queue.New(queue.Options{Pool: pool, Writers: 1})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var writing sync.WaitGroup
	writing.Go(func() { _ = w.queue.Run(ctx) })
	t.Cleanup(func() { stop(); writing.Wait() })
	return w
}

// rules are a project's settings, drawn for every case.
type rules struct {
	duringTurn, agentUnknown, deliveryUnknown, onDead, takeoverMessages string
	maxMessages                                                         int
	fallback                                                            string
	fallbackTakeover                                                    bool
}

func (m *machine) drawRules() rules {
	unknown := []string{turn.Hold, turn.Retry, turn.Reconcile}
	return rules{
		duringTurn:       pick(m, "during_turn", []string{"queue", "supersede", "interrupt"}),
		agentUnknown:     pick(m, "agent on_unknown", unknown),
		deliveryUnknown:  pick(m, "delivery on_unknown", append(unknown, turn.Reconcile)),
		onDead:           pick(m, "on_dead", []string{"advance", "suspend"}),
		takeoverMessages: pick(m, "takeover messages", []string{"ignore", "hold"}),
		maxMessages:      pick(m, "max_messages", []int{2, 4, 100}),
		fallback:         pick(m, "fallback", []string{"", "a person will write to you", "a person will write to you"}),
		fallbackTakeover: pick(m, "fallback takeover", []bool{false, true}),
	}
}

// machine is one case: the real database and real runs on one side, the model on the other.
type machine struct {
	*rapid.T
	*world
	ctx       context.Context
	rules     rules
	project   *turn.Project
	people    *conversation.Store
	processes []*process
	named     int
	moving    *oneRun

	model *model
	// before is the database after the last action.
	before *picture
	// texts are the parts of each turn as they were first stored, replies its reply.
	texts   map[string]string
	replies map[int64]string
	// erasedTurns must never be seen again.
	erasedTurns map[int64]bool
	// allowed are the parts that were on their way when the conversation fell silent.
	allowed map[string]map[string]bool
	// silenced are the turns that were open when a person took their conversation over, each with its parts that were on their way.
	silenced map[int64]map[string]bool
	// redriven are the texts of turns that a person has begun again.
	redriven map[string]bool
	// leftBehind are the parts of erased turns that were on their way.
	leftBehind map[string]bool
	// later are turns whose agent has said that it will call back.
	later map[int64]bool
	// written numbers the texts and ids.
	written int
	// acting is the action under way, for what must follow from it.
	acting acting
}

// acting says what an action is allowed to change.
type acting struct {
	// modes are the conversations' modes before.
	modes map[string]string
	// runs: turns moved, so that modes may change by themselves.
	runs bool
	// audited: a person did something that must have left its row.
	audited bool
	// redriven is the turn that a person had begun again.
	redriven int64
	// stale is a run whose turn somebody else had when it moved.
	stale *turnRow
}

const projectName = "clinic"

var phones = []string{"5531999990001", "5531999990002"}

// typed is how another program writes the phone.
func typed(phone string) string { return "+55 31 " + phone[4:9] + "-" + phone[9:] }

const clean = `DELETE FROM fila_mensagens; DELETE FROM deliveries; DELETE FROM turns; DELETE FROM receipts; DELETE FROM erased_receipts; DELETE FROM hanging_calls;
	DELETE FROM conversations; DELETE FROM wakeups; DELETE FROM audit`

// newMachine begins a case on an empty database.
func newMachine(t *rapid.T, w *world) *machine {
	m := &machine{
		T: t, world: w, ctx: context.Background(), people: conversation.NewStore(w.pool),
		model: newModel(), texts: map[string]string{}, replies: map[int64]string{}, erasedTurns: map[int64]bool{},
		allowed: map[string]map[string]bool{}, later: map[int64]bool{}, leftBehind: map[string]bool{}, redriven: map[string]bool{},
		silenced: map[int64]map[string]bool{},
	}
	m.rules = m.drawRules()
	w.outside.forget()
	if _, err := w.pool.Exec(m.ctx, clean, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("clean up: %v", err)
	}
	r := m.rules
	m.exec(`SELECT fila_open_project($1, 'BR', $2, $3, $4, ' ', $5, 2, $6, true, $7, $8, $9, $10)`, projectName, windowSeconds, ceilingSeconds,
		r.maxMessages, r.duringTurn, r.onDead, takeoverSecond, r.takeoverMessages, r.fallback, r.fallbackTakeover)
	m.project = m.newProject()
	m.processes = []*process{m.newProcess(), m.newProcess()}
	m.before = m.look()
	return m
}

func (m *machine) newProject() *turn.Project {
	address := m.outside.URL
	asked, err := agent.New(agent.Options{
		Call: call.Options{URL: address + "/agent", Timeout: patience, Transport: m.transport}, ReconcileURL: address + "/agent",
	})
	if err != nil {
		m.Fatalf("agent: %v", err)
	}
	channel, err := delivery.New(delivery.Options{
		Type: delivery.TypeHTTP, Call: call.Options{URL: address + "/channel", Timeout: patience, Transport: m.transport},
		ReconcileURL: address + "/channel",
	})
	if err != nil {
		m.Fatalf("channel: %v", err)
	}
	return &turn.Project{
		Name: projectName, Agent: asked, AgentTimeout: patience, AgentUnknown: m.rules.agentUnknown,
		Channel: channel, Sends: true, DeliveryUnknown: m.rules.deliveryUnknown, PartMaxChars: 4096,
		PartDelay: pick(m, "part delay", []time.Duration{0, time.Millisecond}),
		Backoff:   turn.Backoff{Attempts: 2, Min: 100 * time.Second, Max: 400 * time.Second}, Fallback: m.rules.fallback != "",
	}
}

// close ends every run that still stands somewhere.
func (m *machine) close() {
	for _, p := range m.processes {
		for len(p.runs) > 0 {
			m.tell(p.runs[0], false)
		}
	}
}

func (m *machine) exec(sql string, args ...any) {
	if _, err := m.pool.Exec(m.ctx, sql, args...); err != nil {
		m.Fatalf("%s: %v", strings.Fields(sql)[1], err)
	}
}

func (m *machine) event(name string) { m.tally.count(name) }

func (m *machine) ignores() bool { return m.rules.takeoverMessages == "ignore" }
