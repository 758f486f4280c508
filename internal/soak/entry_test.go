package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// entry is the way to the service: whichever instance is there, the frozen ones too, since nobody outside can tell.
type entry struct {
	*soak
	dice   *dice
	client *http.Client
}

func newEntry(s *soak) *entry {
	transport := &http.Transport{MaxIdleConnsPerHost: 20}
	s.Cleanup(transport.CloseIdleConnections)
	return &entry{soak: s, dice: newDice(s.seed, 3), client: &http.Client{Transport: transport, Timeout: 1200 * time.Millisecond}}
}

// ask sends one request to a random instance and returns the status and the body, 0 where there was no whole answer.
func (e *entry) ask(ctx context.Context, method, path string, body any) (int, []byte) {
	base := e.fleet.random(e.dice)
	if base == "" {
		return 0, nil
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		e.Error(err)
		return 0, nil
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(encoded))
	if err != nil {
		e.Error(err)
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := e.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	return answer.StatusCode, read
}
