package turn_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// What the agent does with a call.
const (
	agentReplies  = "replies"
	agentParts    = "replies in parts"
	agentNothing  = "has nothing to say"
	agentHandsOff = "hands off"
	agentLater    = "answers later"
	agentBusy     = "is busy"
	agentRefuses  = "refuses"
	agentLost     = "does it, and the answer is lost"
	agentUnheard  = "never gets to it, and the connection is lost"
)

// What the channel does with a part.
const (
	channelSends   = "sends"
	channelBusy    = "is busy"
	channelRefuses = "refuses"
	channelLost    = "sends, and the answer is lost"
	channelUnheard = "never gets to it, and the connection is lost"
)

// outside is what lies behind the network: an agent and a channel that do as they are told, remember every effect, and tell
// the truth when they are asked. Neither knows its own repetitions, so that every doubled effect shows.
type outside struct {
	*httptest.Server

	mu             sync.Mutex
	agent, channel string
	// slow has one of them, or both, take its time: the call stands still until somebody lets it go on.
	slow slowness
	// mute has the questions about earlier calls answered with "still unknown".
	mute     bool
	asks     []ask
	sends    []sending
	answers  map[int64]string
	effects  map[string]int
	bodies   map[int64]string
	problems []string

	held chan *heldCall
}

// slowness says who takes its time.
type slowness struct{ agent, channel bool }

// heldCall is a call that stands still before its answer.
type heldCall struct {
	turn   int64
	answer chan struct{}
	// gone is closed when the caller has hung up.
	gone <-chan struct{}
}

// hold keeps the call if calls are to take their time.
func (o *outside) hold(r *http.Request, turn int64, slow bool) {
	if !slow {
		return
	}
	h := &heldCall{turn: turn, answer: make(chan struct{}), gone: r.Context().Done()}
	o.held <- h
	<-h.answer
}

// ask is one call of the agent.
type ask struct {
	turn    int64
	attempt int
}

// sending is one call of the channel.
type sending struct {
	turn  int64
	part  int
	phone string
	text  string
}

func (s sending) key() string { return partKey(s.turn, s.part) }

func partKey(turn int64, part int) string { return fmt.Sprintf("%d.%d", turn, part) }

func newOutside(t testing.TB) *outside {
	t.Helper()
	o := &outside{held: make(chan *heldCall)}
	o.forget()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /agent", o.askAgent)
	mux.HandleFunc("GET /agent", o.questionAgent)
	mux.HandleFunc("POST /channel", o.sendPart)
	mux.HandleFunc("GET /channel", o.questionChannel)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// forget begins a new life.
func (o *outside) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.agent, o.channel, o.mute, o.slow = agentReplies, channelSends, false, slowness{}
	o.asks, o.sends, o.problems = nil, nil, nil
	o.answers, o.effects, o.bodies = map[int64]string{}, map[string]int{}, map[int64]string{}
}

// does says how both behave from now on.
func (o *outside) does(agent, channel string, slow, mute bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.agent, o.channel, o.slow, o.mute = agent, channel, slowness{slow, slow}, mute
}

// takeTime lets calls stand still before their answer.
func (o *outside) takeTime(s slowness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slow = s
}

// promises tells whether the agent answers later.
func (o *outside) promises() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.agent == agentLater
}

// take returns the calls since the last time.
func (o *outside) take() (asks []ask, sends []sending, problems []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	asks, sends, problems = o.asks, o.sends, o.problems
	o.asks, o.sends, o.problems = nil, nil, nil
	return asks, sends, problems
}

// happened tells how often a part went out.
func (o *outside) happened(turn int64, part int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.effects[partKey(turn, part)]
}

func (o *outside) askAgent(w http.ResponseWriter, r *http.Request) {
	body := readAll(r)
	turn, _ := strconv.ParseInt(r.Header.Get("Idempotency-Key"), 10, 64)
	attempt, _ := strconv.Atoi(r.Header.Get("X-Fila-Attempt"))
	does, answer, slow := o.agentDoes(turn, attempt, body)
	o.hold(r, turn, slow)
	switch does {
	case agentLater:
		w.WriteHeader(http.StatusAccepted)
	case agentBusy:
		w.WriteHeader(http.StatusServiceUnavailable)
	case agentRefuses:
		w.WriteHeader(http.StatusBadRequest)
	case agentLost, agentUnheard:
		panic(http.ErrAbortHandler)
	default:
		_, _ = io.WriteString(w, answer)
	}
}

// agentDoes is the agent's effect; what comes after it is only the answer.
func (o *outside) agentDoes(turn int64, attempt int, body string) (does, answer string, slow bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asks = append(o.asks, ask{turn, attempt})
	o.compare(turn, body)
	words := fmt.Sprintf("reply %d to turn %d", len(o.asks), turn)
	answer = map[string]string{
		agentReplies:  `{"reply": "` + words + `"}`,
		agentLost:     `{"reply": "` + words + `"}`,
		agentParts:    `{"replies": ["` + words + `, one", "` + words + `, two", "` + words + `, three"]}`,
		agentHandsOff: `{"reply": "` + words + `", "handoff": true}`,
		agentNothing:  `{}`,
	}[o.agent]
	if answer != "" {
		o.answers[turn] = answer
	}
	return o.agent, answer, o.slow.agent
}

// compare holds two bodies of one key together: but for the attempt they must be the same.
func (o *outside) compare(turn int64, body string) {
	var keys map[string]any
	if err := json.Unmarshal([]byte(body), &keys); err != nil {
		o.problems = append(o.problems, "the agent got no JSON")
		return
	}
	delete(keys, "attempt")
	same, _ := json.Marshal(keys)
	if before, ok := o.bodies[turn]; ok && before != string(same) {
		o.problems = append(o.problems, fmt.Sprintf("turn %d: the agent got two bodies under one key", turn))
	}
	o.bodies[turn] = string(same)
}

func (o *outside) questionAgent(w http.ResponseWriter, r *http.Request) {
	turn, _ := strconv.ParseInt(r.URL.Query().Get("turn_id"), 10, 64)
	o.mu.Lock()
	defer o.mu.Unlock()
	answer, done := o.answers[turn]
	switch {
	case o.mute:
		w.WriteHeader(http.StatusAccepted)
	case done:
		_, _ = io.WriteString(w, answer)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (o *outside) sendPart(w http.ResponseWriter, r *http.Request) {
	var s struct {
		Turn  int64  `json:"turn_id,string"`
		Phone string `json:"phone"`
		Part  int    `json:"part"`
		Text  string `json:"text"`
	}
	_ = json.Unmarshal([]byte(readAll(r)), &s)
	made := sending{turn: s.Turn, part: s.Part, phone: s.Phone, text: s.Text}
	does, slow := o.channelDoes(made)
	o.hold(r, s.Turn, slow)
	switch does {
	case channelBusy:
		w.WriteHeader(http.StatusServiceUnavailable)
	case channelRefuses:
		w.WriteHeader(http.StatusBadRequest)
	case channelLost, channelUnheard:
		panic(http.ErrAbortHandler)
	default:
		_, _ = io.WriteString(w, `{"id": "`+providerID(made.turn, made.part)+`"}`)
	}
}

// channelDoes is the channel's effect.
func (o *outside) channelDoes(made sending) (does string, slow bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	does = o.channel
	if made.part == 0 && does == channelBusy {
		does = channelRefuses // a last word is repeated after a real pause, which no case has time for
	}
	o.sends = append(o.sends, made)
	if does == channelSends || does == channelLost {
		o.effects[made.key()]++
	}
	return does, o.slow.channel
}

func providerID(turn int64, part int) string { return "provider-" + partKey(turn, part) }

func (o *outside) questionChannel(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("turn_id") + "." + r.URL.Query().Get("part")
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.mute:
		w.WriteHeader(http.StatusAccepted)
	case o.effects[key] > 0:
		_, _ = io.WriteString(w, `{"id": "provider-`+key+`"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func readAll(r *http.Request) string {
	var b strings.Builder
	_, _ = io.Copy(&b, r.Body)
	return b.String()
}
