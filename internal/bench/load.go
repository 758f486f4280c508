package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// burst is what one patient writes: ids in order, each at its moment after the start of the run.
type burst struct {
	project string
	phone   string
	ids     []string
	at      []time.Duration
	// before ends when the patient's earlier burst is written, done when this one is.
	before <-chan struct{}
	done   chan struct{}
}

// load is the patients.
type load struct {
	o Options
	// client costs a third of what the standard library's would: what the generator computes is taken from what it measures.
	client *fasthttp.HostClient
	url    string

	mu      sync.Mutex
	acks    []time.Duration
	acked   map[string]bool
	refused int
	bursts  int
	next    int
	writing map[int]<-chan struct{}
	sent    atomic.Int64
}

func newLoad(o Options, url string) *load {
	return &load{
		o: o, url: url, acked: map[string]bool{}, writing: map[int]<-chan struct{}{},
		client: &fasthttp.HostClient{
			Addr: strings.TrimPrefix(url, "http://"), MaxConns: 4096, ReadTimeout: settleFor, WriteTimeout: settleFor, MaxConnWaitTimeout: settleFor,
			// What is not answered may have been stored: it is sent again by its own rule.
			RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
		},
	}
}

// patient makes the next burst. Within it pauses are far below the window, so that one turn is right.
func (l *load) patient(start time.Duration, random *rand.Rand) burst {
	l.mu.Lock()
	n, phone := l.next, l.next
	l.next++
	done := make(chan struct{})
	var before <-chan struct{}
	if l.o.Conversations > 0 {
		phone = n % l.o.Conversations
		before = l.writing[phone]
		l.writing[phone] = done
	}
	l.mu.Unlock()
	b := burst{before: before, done: done, project: projectName(phone % l.o.Projects), phone: "55319" + strconv.Itoa(10000000+phone)}
	for m := range l.o.Burst {
		if m > 0 {
			start += time.Duration((0.02 + 0.68*random.Float64()) * float64(l.o.Window))
		}
		// As long as those that Meta gives.
		b.ids = append(b.ids, fmt.Sprintf("wamid.HBgNNTUzMTk5OTk5MDAwMRUCABIYF%09d.%02d", n, m))
		b.at = append(b.at, start)
	}
	return b
}

// run sends until the length is over, and returns how long that took.
func (l *load) run(ctx context.Context) time.Duration {
	started := time.Now()
	if l.o.Rate == 0 {
		l.closed(ctx, started)
	} else {
		l.open(ctx, started)
	}
	return time.Since(started)
}

// open lets bursts begin at random moments of a constant rate, however slow the answers are. A message that is sent late, since
// the one before it was not acknowledged, counts from when it should have been sent.
func (l *load) open(ctx context.Context, started time.Time) {
	random := rand.New(rand.NewPCG(l.o.Seed, 0))
	every := float64(time.Second) * float64(l.o.Burst) / l.o.Rate
	var writing sync.WaitGroup
	for next := time.Duration(0); next < l.o.Length && ctx.Err() == nil; {
		b := l.patient(next, random)
		next += time.Duration(every * random.ExpFloat64())
		pause(ctx, b.at[0]-time.Since(started))
		l.o.Progress("messages", float64(time.Since(started))/float64(l.o.Length))
		writing.Go(func() { l.write(ctx, b, started, true) })
	}
	writing.Wait()
}

// closed lets every caller send burst after burst, each message as soon as the one before is acknowledged.
func (l *load) closed(ctx context.Context, started time.Time) {
	var writing sync.WaitGroup
	for client := range Clients {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(l.o.Seed, uint64(client)))
			for time.Since(started) < l.o.Length && ctx.Err() == nil {
				l.write(ctx, l.patient(0, random), started, false)
				l.o.Progress("messages", float64(time.Since(started))/float64(l.o.Length))
			}
		})
	}
	writing.Wait()
}

// write sends one burst in order. What is refused is sent again, as a provider does.
func (l *load) write(ctx context.Context, b burst, started time.Time, scheduled bool) {
	defer close(b.done)
	if b.before != nil {
		select {
		case <-b.before:
		case <-ctx.Done():
			return
		}
	}
	acks := make([]time.Duration, 0, len(b.ids))
	refused := 0
	for m, id := range b.ids {
		since := time.Now()
		if scheduled {
			pause(ctx, b.at[m]-time.Since(started))
			since = started.Add(b.at[m])
		}
		for !l.post(ctx, b, id) {
			if refused++; ctx.Err() != nil {
				return
			}
			pause(ctx, 50*time.Millisecond)
		}
		acks = append(acks, time.Since(since))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks = append(l.acks, acks...)
	for _, id := range b.ids {
		l.acked[id] = true
	}
	l.refused += refused
	l.bursts++
}

// post tells whether the message was acknowledged.
func (l *load) post(ctx context.Context, b burst, id string) bool {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(l.url + "/v1/projects/" + b.project + "/messages")
	request.Header.SetMethod(http.MethodPost)
	request.Header.SetContentType("application/json")
	request.SetBodyString(`{"id":"` + id + `","phone":"` + b.phone + `","text":"queria saber sobre ultrassom"}`)
	if ctx.Err() != nil || l.client.Do(request, response) != nil || response.StatusCode() != http.StatusAccepted {
		return false
	}
	l.sent.Add(1)
	return true
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func projectName(n int) string { return "bench" + strconv.Itoa(n) }
