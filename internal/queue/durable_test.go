package queue

import (
	"errors"
	"testing"
	"time"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

// A commit whose wait for the synchronous standby was cancelled is no promise, although the server reports a success.
func TestUnconfirmedCommitIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	url := server.URL("postgres")
	if _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	c := prepare(t, url, Options{}).start()
	c.exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	c.exec("SELECT pg_reload_conf()")
	for value[string](c, "SHOW synchronous_standby_names") != "nobody" {
		if t.Context().Err() != nil {
			t.Fatal("the setting never came")
		}
	}

	answered := make(chan error, 1)
	go func() {
		_, err := c.Push(t.Context(), []Message{{Project: "norte", ID: "a", Phone: "1", Address: "1", Text: "oi", Kind: "text"}})
		answered <- err
	}()
	const cancel = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
	for deadline := time.Now().Add(10 * time.Second); value[int](c, cancel) == 0; {
		select {
		case err := <-answered:
			t.Fatalf("answered %v before anybody cancelled its wait", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("no commit waits for the standby")
		}
	}
	if err := <-answered; !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want %v", err, ErrUnavailable)
	}
	if got := c.waiting("norte"); len(got) != 1 {
		t.Errorf("the cancelled wait undid the commit: %q", got)
	}
}
