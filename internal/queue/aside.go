package queue

import (
	"context"
	"sync"
)

// asideLimit is how many requests may stand aside at once. Each is tried alone for shortLock, so that all of them have
// their chance within the patience of their callers.
const asideLimit = 100

// conversation is what somebody else may hold.
type conversation struct{ project, phone string }

// aside holds requests whose conversation somebody keeps locked (a session in psql that was left open, a frozen process).
// They are tried again apart from the batches, so that it costs everybody else nothing but the first wait.
type aside struct {
	mu       sync.Mutex
	requests []*request
	held     map[conversation]int
	wake     chan struct{}
}

func newAside() *aside {
	return &aside{held: map[conversation]int{}, wake: make(chan struct{}, 1)}
}

// add puts the request aside, unless too many stand there.
func (a *aside) add(r *request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) >= asideLimit {
		return false
	}
	a.requests = append(a.requests, r)
	for i := range r.messages {
		a.held[conversation{r.messages[i].Project, r.messages[i].Phone}]++
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return true
}

// concerns tells whether a conversation of the request is known to be held.
func (a *aside) concerns(r *request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.held) == 0 {
		return false
	}
	for i := range r.messages {
		if a.held[conversation{r.messages[i].Project, r.messages[i].Phone}] > 0 {
			return true
		}
	}
	return false
}

// next takes the request that has stood here longest, or nil. Its conversations stay held until it is released.
func (a *aside) next() *request {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) == 0 {
		return nil
	}
	r := a.requests[0]
	a.requests[0] = nil
	a.requests = a.requests[1:]
	return r
}

func (a *aside) release(r *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range r.messages {
		c := conversation{r.messages[i].Project, r.messages[i].Phone}
		if a.held[c]--; a.held[c] == 0 {
			delete(a.held, c)
		}
	}
}

// runAside tries what stands aside until no more can come and nothing is left.
func (w *writer) runAside(ctx context.Context, gathered <-chan struct{}) {
	for open := true; ; {
		r := w.aside.next()
		switch {
		case r != nil:
			w.write(ctx, []*request{r}, shortLock)
			w.aside.release(r)
		case !open:
			return
		default:
			select {
			case <-w.aside.wake:
			case <-gathered:
				open = false
			}
		}
	}
}

// putAside leaves a request to runAside, or sends its caller away.
func (w *writer) putAside(r *request) {
	if !w.aside.add(r) {
		r.answer(nil, ErrUnavailable)
	}
}

// free puts those aside that would hold up the batch, and returns the others.
func (w *writer) free(batch []*request) []*request {
	kept := batch[:0]
	for _, r := range batch {
		if w.aside.concerns(r) {
			w.putAside(r)
		} else {
			kept = append(kept, r)
		}
	}
	return kept
}
