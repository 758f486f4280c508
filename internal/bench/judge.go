package bench

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// call is one call of the agent.
type call struct {
	phone string
	ids   []string
	start time.Time
}

// judge is the agent and the delivery, and sees every turn.
type judge struct {
	server   fasthttp.Server
	listener net.Listener

	mu        sync.Mutex
	calls     map[int64]call
	active    map[string]int64
	overlaps  int
	delivered map[int64]int
	// parked tells when the overdue conversation's turn came, agentTakes is how long the agent thinks.
	parked     chan time.Time
	agentTakes time.Duration
}

func newJudge(agentTakes time.Duration) (*judge, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // A listener lives as long as its server.
	if err != nil {
		return nil, err
	}
	j := &judge{listener: listener, calls: map[int64]call{}, active: map[string]int64{}, delivered: map[int64]int{}, parked: make(chan time.Time, 1), agentTakes: agentTakes}
	j.server.Handler = func(c *fasthttp.RequestCtx) {
		switch string(c.Path()) {
		case "/agent":
			j.agent(c)
		case "/delivery":
			j.delivery(c)
		default:
			c.Error("no such place", fasthttp.StatusNotFound)
		}
	}
	j.server.CloseOnShutdown = true
	j.server.Logger = silent{}
	go func() { _ = j.server.Serve(listener) }()
	return j, nil
}

// silent says nothing of connections that break when the service stops.
type silent struct{}

func (silent) Printf(string, ...any) {}

// close hangs up on whoever still holds a connection.
func (j *judge) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = j.server.ShutdownWithContext(ctx)
}

func (j *judge) url() string { return "http://" + j.listener.Addr().String() }

func (j *judge) agent(c *fasthttp.RequestCtx) {
	start := time.Now()
	var turn struct {
		TurnID   string `json:"turn_id"`
		Project  string
		Phone    string
		Messages []struct{ ID string }
	}
	if err := json.Unmarshal(c.PostBody(), &turn); err != nil {
		c.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	if turn.Project == parked {
		select {
		case j.parked <- start:
		default:
		}
		c.SetStatusCode(fasthttp.StatusNoContent)
		return
	}
	id, _ := strconv.ParseInt(turn.TurnID, 10, 64)
	ids := make([]string, len(turn.Messages))
	for i, m := range turn.Messages {
		ids[i] = m.ID
	}
	j.mu.Lock()
	if other, busy := j.active[turn.Phone]; busy && other != id {
		j.overlaps++
	}
	j.active[turn.Phone] = id
	if _, again := j.calls[id]; !again {
		j.calls[id] = call{turn.Phone, ids, start}
	}
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.active[turn.Phone] == id {
			delete(j.active, turn.Phone)
		}
	}()
	<-time.After(j.agentTakes)
	c.SetContentType("application/json")
	c.SetBodyString(`{"reply":"Fazemos, sim."}`)
}

func (j *judge) delivery(c *fasthttp.RequestCtx) {
	var part struct {
		TurnID string `json:"turn_id"`
	}
	if err := json.Unmarshal(c.PostBody(), &part); err != nil {
		c.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	id, _ := strconv.ParseInt(part.TurnID, 10, 64)
	j.mu.Lock()
	j.delivered[id]++
	j.mu.Unlock()
}

// settled tells whether every acknowledged message is in a turn that was answered.
func (j *judge) settled(messages int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := 0
	for id, c := range j.calls {
		if j.delivered[id] > 0 {
			seen += len(c.ids)
		}
	}
	return seen >= messages
}

// verdict fills in what the turns show. due is when each turn's burst was due, by the database.
func (j *judge) verdict(r *Report, acked map[string]bool, due map[int64]time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	turns := make([]int64, 0, len(j.calls))
	for id := range j.calls {
		turns = append(turns, id)
	}
	slices.Sort(turns)
	where := map[string]int64{}
	last := map[string]string{}
	var late []time.Duration
	for _, id := range turns {
		c := j.calls[id]
		for _, m := range c.ids {
			if where[m] != 0 {
				r.Duplicated++
			}
			// Within a conversation ids grow in the order of sending.
			if m <= last[c.phone] {
				r.OutOfOrder++
			}
			where[m], last[c.phone] = id, m
		}
		if at, ok := due[id]; ok {
			d := c.start.Sub(at)
			if d < 0 {
				r.Early++
			}
			late = append(late, d)
		}
		switch {
		case j.delivered[id] == 0:
			r.Undelivered++
		case j.delivered[id] > 1:
			r.Duplicated++
		}
	}
	for m := range acked {
		if where[m] == 0 {
			r.Lost++
		}
	}
	r.Turns, r.Overlapped = len(turns), j.overlaps
	r.LatenessP50, r.LatenessP99, r.LatenessMax = milliseconds(quantile(late, 0.5)), milliseconds(quantile(late, 0.99)), milliseconds(quantile(late, 1))
}

// quantile sorts, and is 0 of nothing.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
