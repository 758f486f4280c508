package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fila/internal/soak/history"
)

// agent answers turns, now and then badly. Every call gets another answer, so that it shows when two of them are sent; what it
// did for a turn it remembers, and tells when asked.
type agent struct {
	*soak
	dice   *dice
	serial atomic.Int64
	quiet  atomic.Bool
	ctx    context.Context
	cancel context.CancelFunc
	calls  sync.WaitGroup // callbacks

	mu   sync.Mutex
	busy map[int64]int
	done map[int64][]byte
}

func newAgent(s *soak) *agent {
	a := &agent{soak: s, dice: newDice(s.seed, 1), busy: map[int64]int{}, done: map[int64][]byte{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// calm makes the agent a good one.
func (a *agent) calm() { a.quiet.Store(true) }

func (a *agent) close() {
	a.cancel()
	a.calls.Wait()
}

// question is what the agent reads of a call.
type question struct {
	Turn     string `json:"turn_id"`
	Project  string `json:"project"`
	Phone    string `json:"phone"`
	Attempt  int    `json:"attempt"`
	Messages []struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	} `json:"messages"`
}

// answer is what it says.
type answer struct {
	Replies []string `json:"replies,omitempty"`
	Handoff bool     `json:"handoff,omitempty"`
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		a.reconcile(w, r)
		return
	}
	begun := a.record.now()
	q, ask, err := readAsk(r)
	if err != nil {
		a.Errorf("the agent was sent what it cannot read: %v", err)
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	a.working(ask.Turn, 1)
	over := a.watch(r)
	pause(a.ctx, a.dice.between(0, 300*time.Millisecond))
	fate := a.dice.roll()
	if a.quiet.Load() {
		fate = max(fate, 0.2)
	}
	said := answer{}
	if fate > 0.03 {
		said = a.think(ask.Turn)
	}
	if early(fate) {
		a.calls.Go(func() { a.callBack(q, said, 0) })
		pause(a.ctx, 50*time.Millisecond)
	}
	ask.Invoke, ask.Return, ask.Replies = begun, over(), said.Replies
	note(a.record, asks, ask)
	a.working(ask.Turn, -1)
	a.say(w, r, q, said, fate)
}

// watch returns a function that says when the call was over: now, or when the caller hung up before. The agent then works on for
// nobody, as agents do; but who has hung up has done what he can, and may go on.
func (a *agent) watch(r *http.Request) (over func() time.Duration) {
	var at atomic.Int64
	stop := context.AfterFunc(r.Context(), func() { at.Store(int64(a.record.now())) })
	return func() time.Duration {
		stop()
		if gone := at.Load(); gone != 0 {
			a.tally.count("hung up on the agent")
			return time.Duration(gone)
		}
		return a.record.now()
	}
}

// readAsk takes the attempt out of the body: all the rest must be the same on a repetition.
func readAsk(r *http.Request) (q question, ask history.Ask, err error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return q, ask, err
	}
	if err := json.Unmarshal(raw, &q); err != nil {
		return q, ask, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return q, ask, err
	}
	delete(keys, "attempt")
	body, err := json.Marshal(keys)
	if err != nil {
		return q, ask, err
	}
	ask = history.Ask{
		Project: q.Project, Phone: q.Phone, Attempt: q.Attempt, Instance: r.Header.Get("X-Soak-Instance"), Body: string(body),
	}
	for _, m := range q.Messages {
		ask.Messages = append(ask.Messages, history.Message{ID: m.ID, Text: m.Text})
	}
	if key := r.Header.Get("Idempotency-Key"); key != q.Turn || r.Header.Get("X-Fila-Attempt") != strconv.Itoa(q.Attempt) {
		return q, ask, fmt.Errorf("key %q and attempt %q do not belong to turn %s", key, r.Header.Get("X-Fila-Attempt"), q.Turn)
	}
	ask.Turn, err = strconv.ParseInt(q.Turn, 10, 64)
	return q, ask, err
}

// think makes an answer that no other call gets; a few have nothing to say, a few hand over.
func (a *agent) think(turn int64) answer {
	serial, parts := a.serial.Add(1), 1
	switch roll := a.dice.roll(); {
	case roll < 0.03:
		parts = 0
	case roll < 0.2:
		parts = 2 + a.dice.below(3)
	}
	said := answer{Handoff: a.dice.roll() < 0.02}
	for i := range parts {
		said.Replies = append(said.Replies, fmt.Sprintf("answer %d to turn %d, part %d", serial, turn, i+1))
	}
	body, err := json.Marshal(said)
	if err != nil {
		a.Error(err)
	}
	a.mu.Lock()
	a.done[turn] = body
	a.mu.Unlock()
	return said
}

// say answers as fate will have it: not at all, lost on the way, never, later, or at once.
func (a *agent) say(w http.ResponseWriter, r *http.Request, q question, said answer, fate float64) {
	switch {
	case fate < 0.03:
		status := []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusServiceUnavailable}[a.dice.below(3)]
		http.Error(w, "not now", status)
	case fate < 0.06:
		hangUp(w)
	case fate < 0.07:
		never(a.ctx, r)
	case fate < 0.16:
		a.later(w, q, said, fate)
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(said); err != nil {
			return // the caller is gone; what it makes of that is what this is about
		}
	}
}

// later promises an answer. Now and then it does not keep the promise, or only when the turn is being asked again, or it has
// called back before.
func (a *agent) later(w http.ResponseWriter, q question, said answer, fate float64) {
	switch {
	case fate < 0.075 || early(fate):
	case fate < 0.11:
		a.calls.Go(func() { a.callBack(q, said, agentTimeout+a.dice.between(100*time.Millisecond, 600*time.Millisecond)) })
	default:
		a.calls.Go(func() { a.callBack(q, said, a.dice.between(10*time.Millisecond, 400*time.Millisecond)) })
	}
	w.WriteHeader(http.StatusAccepted)
}

// early says that the agent calls back before it has answered.
func early(fate float64) bool { return fate > 0.11 && fate < 0.12 }

// callBack says later what it had to say, until somebody has heard it or nobody wants it any more.
func (a *agent) callBack(q question, said answer, wait time.Duration) {
	path := "/v1/projects/" + q.Project + "/turns/" + q.Turn + "/reply"
	for ; pause(a.ctx, wait); wait = a.dice.between(10*time.Millisecond, 400*time.Millisecond) {
		status, _ := a.entry.ask(a.ctx, http.MethodPost, path, said)
		switch {
		case status >= 200 && status < 300:
			a.tally.count("called back")
			return
		case status == http.StatusConflict, status == http.StatusNotFound:
			a.tally.count("callback refused")
			return
		}
	}
}

// reconcile tells what became of a turn's call.
func (a *agent) reconcile(w http.ResponseWriter, r *http.Request) {
	turn, err := strconv.ParseInt(r.URL.Query().Get("turn_id"), 10, 64)
	if err != nil {
		a.Errorf("the agent was asked about the turn %q", r.URL.Query().Get("turn_id"))
	}
	a.mu.Lock()
	busy, body := a.busy[turn], a.done[turn]
	a.mu.Unlock()
	tellOutcome(w, a.tally, "agent", busy > 0, body)
}

func (a *agent) working(turn int64, more int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[turn] += more; a.busy[turn] == 0 {
		delete(a.busy, turn)
	}
}

// tellOutcome answers a question about an unknown outcome: under way, not done, or done with this body.
func tellOutcome(w http.ResponseWriter, t *tally, who string, busy bool, body []byte) {
	switch {
	case busy:
		w.WriteHeader(http.StatusAccepted)
	case body == nil:
		t.count(who + " reconciled: not done")
		w.WriteHeader(http.StatusNotFound)
	default:
		t.count(who + " reconciled: done")
		_, _ = w.Write(body)
	}
}

// hangUp breaks the connection before an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// never says nothing until the caller gives up.
func never(ctx context.Context, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-ctx.Done():
	}
}
