package race_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/queue"
)

// gather starts a queue of one writer, which meets a held conversation first, and starts all pushers before that is let go, so that
// pushes find company in a commit. Nothing tells which of them do: the caller has to count the commits.
func (s *scene) gather(messages []queue.Message) (receipts []queue.Receipt, failures []error) {
	s.Helper()
	q := queue.New(queue.Options{Pool: s.pool, Log: zerolog.Nop(), Writers: 1, Patience: time.Minute})
	running, stop := context.WithCancel(s.Context())
	var writing sync.WaitGroup
	writing.Go(func() { _ = q.Run(running) })
	defer writing.Wait()
	defer stop()

	s.push("known", cleo)
	frozen := s.frozen(`SELECT fila_lock('clinic', $1)`, cleo)
	receipts, failures = make([]queue.Receipt, len(messages)), make([]error, len(messages))
	var started, answered sync.WaitGroup
	push := func(i int) {
		started.Done()
		got, err := q.Push(s.Context(), []queue.Message{messages[i]})
		if err == nil {
			receipts[i] = got[0]
		}
		failures[i] = err
	}
	answered.Go(func() {
		_, _ = q.Push(s.Context(), []queue.Message{{Project: project, ID: "held", Phone: cleo, Address: cleo, Text: "held", Kind: "text"}})
	})
	s.awaitLock()
	started.Add(len(messages))
	for i := range messages {
		answered.Go(func() { push(i) })
	}
	started.Wait()
	frozen.rollback()
	answered.Wait()
	return receipts, failures
}

// awaitLock comes back when some statement waits for a lock.
func (s *scene) awaitLock() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for s.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.Fatalf("awaited for %s that a statement waits for a lock", patience)
		}
	}
}

// One message that the database will never take costs its neighbours in the batch nothing: splitting leaves it alone.
func TestPoisonousMessageIsLeftOut(t *testing.T) {
	t.Parallel()
	poisons := map[string]queue.Message{
		"NUL in a text":    {Text: "a\x00b"},
		"not UTF-8":        {Text: "a\xffb"},
		"metadata no JSON": {Text: "a", Metadata: []byte(`{"a": "\u0000"}`)},
		"unknown project":  {Text: "a", Project: "nobody"},
	}
	for name, poison := range poisons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			messages := make([]queue.Message, 60)
			for i := range messages {
				phone := fmt.Sprintf("55319888800%02d", i%7)
				messages[i] = queue.Message{Project: project, ID: fmt.Sprint("m", i), Phone: phone, Address: phone, Text: "oi", Kind: "text"}
			}
			const bad = 23
			messages[bad].Text, messages[bad].Metadata = poison.Text, poison.Metadata
			if poison.Project != "" {
				messages[bad].Project = poison.Project
			}
			receipts, failures := s.gather(messages)
			for i := range messages {
				var invalid *queue.InvalidError
				switch {
				case i == bad && !errors.As(failures[i], &invalid):
					t.Errorf("the poisonous message: %v, want an InvalidError", failures[i])
				case i != bad && (failures[i] != nil || receipts[i].Status != queue.Queued):
					t.Errorf("message %d: %v, %v", i, receipts[i], failures[i])
				}
			}
			if n := s.count(`SELECT count(*) FROM receipts WHERE message_id LIKE 'm%'`); n != len(messages)-1 {
				t.Errorf("%d receipts, want %d", n, len(messages)-1)
			}
			if n := s.count(`SELECT count(DISTINCT xmin::text) FROM receipts WHERE message_id LIKE 'm%'`); n >= len(messages)-1 {
				t.Errorf("%d commits for %d messages: no batch was split", n, len(messages))
			}
		})
	}
}

// A frozen session that holds one conversation costs the pushes of others no more than the lock's time limit.
func TestFrozenSessionStallsNoOtherPush(t *testing.T) {
	t.Parallel()
	s := setup(t)
	q := queue.New(queue.Options{Pool: s.pool, Log: zerolog.Nop(), Writers: 1, Patience: time.Minute})
	running, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() { _ = q.Run(running) })
	t.Cleanup(func() { stop(); writing.Wait() })

	s.push("known", ana)
	frozen := s.frozen(`SELECT fila_lock('clinic', $1)`, ana)
	held := make(chan error, 1)
	push := func(id, phone string) error {
		_, err := q.Push(t.Context(), []queue.Message{{Project: project, ID: id, Phone: phone, Address: phone, Text: "oi", Kind: "text"}})
		return err
	}
	go func() { held <- push("m1", ana) }()
	s.awaitLock()
	for i := range 3 {
		if err := push(fmt.Sprint("other", i), bia); err != nil {
			t.Errorf("push beside a frozen session: %v", err)
		}
	}
	if len(held) > 0 {
		t.Errorf("the push behind the frozen session ended before the session did")
	}
	frozen.rollback()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case err := <-held:
		if err != nil {
			t.Errorf("the push behind the frozen session, once that is gone: %v", err)
		}
	case <-ctx.Done():
		t.Fatalf("awaited for %s that the push behind the frozen session ends, once that is gone", patience)
	}
	if n := s.count(`SELECT count(*) FROM fila_mensagens`); n != 5 {
		t.Errorf("%d messages wait, want 5", n)
	}
}
