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

// channel brings texts to patients, now and then badly. For most projects it knows a key again; for one it does not.
type channel struct {
	*soak
	dice   *dice
	quiet  atomic.Bool
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	busy map[string]int
	got  map[string]bool
}

func newChannel(s *soak) *channel {
	c := &channel{soak: s, dice: newDice(s.seed, 2), busy: map[string]int{}, got: map[string]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// calm makes the channel a good one.
func (c *channel) calm() { c.quiet.Store(true) }

func (c *channel) close() { c.cancel() }

func (c *channel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		key := r.URL.Query().Get("turn_id") + "." + r.URL.Query().Get("part")
		busy, got := c.know(key)
		var body []byte
		if got {
			body = identity(key)
		}
		tellOutcome(w, c.tally, "channel", busy, body)
		return
	}
	begun := c.record.now()
	key, send, err := readSend(r)
	if err != nil {
		c.Errorf("the channel was sent what it cannot read: %v", err)
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	c.working(key, 1)
	pause(c.ctx, c.dice.between(0, 200*time.Millisecond))
	fate := c.dice.roll()
	if c.quiet.Load() {
		fate = max(fate, 0.2)
	}
	if fate > 0.05 {
		send.Effect = c.bring(send.Project, key)
	}
	send.Invoke, send.Return = begun, c.record.now()
	note(c.record, sends, send)
	c.working(key, -1)
	c.say(w, r, key, fate)
}

func readSend(r *http.Request) (key string, send history.Send, err error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return key, send, err
	}
	var b struct {
		Turn    string `json:"turn_id"`
		Project string `json:"project"`
		Phone   string `json:"phone"`
		Part    int    `json:"part"`
		Parts   int    `json:"parts"`
		Text    string `json:"text"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return key, send, err
	}
	turn, err := strconv.ParseInt(b.Turn, 10, 64)
	if err != nil {
		return key, send, err
	}
	send = history.Send{
		Project: b.Project, Phone: b.Phone, Turn: turn, Part: b.Part, Parts: b.Parts, Text: b.Text, Body: string(raw),
		Instance: r.Header.Get("X-Soak-Instance"),
	}
	key = fmt.Sprintf("%d.%d", turn, b.Part)
	if sent := r.Header.Get("Idempotency-Key"); sent != key {
		return key, send, fmt.Errorf("key %q does not belong to %s", sent, key)
	}
	return key, send, nil
}

// bring says whether the patient gets the text by this call.
func (c *channel) bring(project, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.got[key]
	c.got[key] = true
	if again && !clinics[project].Once {
		c.tally.count("part known again by its key")
		return false
	}
	return true
}

func (c *channel) say(w http.ResponseWriter, r *http.Request, key string, fate float64) {
	switch {
	case fate < 0.03:
		http.Error(w, "not now", http.StatusServiceUnavailable)
	case fate < 0.08: // before the effect or after it
		hangUp(w)
	case fate < 0.09:
		never(c.ctx, r)
	default:
		_, _ = w.Write(identity(key))
	}
}

func (c *channel) working(key string, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[key] += more; c.busy[key] == 0 {
		delete(c.busy, key)
	}
}

// know tells whether a call with the key is under way, and whether the patient got its text.
func (c *channel) know(key string) (busy, got bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy[key] > 0, c.got[key]
}

// identity is the channel's answer to a part that it took.
func identity(key string) []byte { return fmt.Appendf(nil, `{"id":"sent.%s"}`, key) }
