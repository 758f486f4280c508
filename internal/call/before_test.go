package call

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
)

func TestTheLastLookIsTakenOnTheConnection(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	address := rawServer(t, func(n int64, c net.Conn) {
		if read(c) != nil {
			served.Add(1)
			c.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
		}
	})
	c := client(t, Options{URL: address})
	looks := 0
	if _, err := c.Post(Before(t.Context(), func() error { looks++; return nil }), "1", nil, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if looks != 1 || served.Load() != 1 {
		t.Errorf("looks %d, requests served %d; want 1 and 1", looks, served.Load())
	}

	refused := errors.New("no longer ours")
	_, err := c.Post(Before(t.Context(), func() error { return refused }), "1", nil, []byte(`{}`))
	if f := failed(t, err); f.Outcome != NotDone {
		t.Errorf("outcome %s, want %s", f.Outcome, NotDone)
	}
	if served.Load() != 1 {
		t.Error("the request left in spite of the refusal")
	}
}
