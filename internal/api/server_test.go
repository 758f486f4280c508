package api

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"fila/internal/api/entry"
)

func TestMistakesAreAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.want(c.send("GET", "/v1/panic/5531987654321", "", ""), 500, "an error of the service")
	c.want(c.send("GET", "/v1/mistake/5531987654321", "", ""), 500, "an error of the service")
	response, err := http.Get(c.url + "/v1/abort")
	if err == nil {
		response.Body.Close()
		t.Errorf("an aborted answer: want none, got %d", response.StatusCode)
	}
	log := c.log.String()
	if strings.Count(log, `"message":"panic in a request"`) != 2 || !strings.Contains(log, "index out of range") || !strings.Contains(log, "/v1/panic/:phone") {
		t.Errorf("log: got %s", log)
	}
	if strings.Contains(log, "canario") || strings.Contains(log, "5531987654321") {
		t.Errorf("the log quotes the request: %s", log)
	}
}

func TestNothingPersonalLeaks(t *testing.T) {
	t.Parallel()
	c := setup(t)
	const secret = "5531987654321"
	words := []string{secret, "canario", "token-clinic", admin}
	paths := []string{
		"conversations/" + secret + "/canario", "conversations/" + secret + "%00canario/takeover", "turns/canario" + secret, "turns?state=canario", "turns?before=" + secret + "canario",
		"turns?limit=canario", "/canario/" + secret, "/v1/projects/canario/turns", "conversations/" + strings.Repeat(secret, 30), "conversations/" + secret + "/suspend",
	}
	bodies := []string{``, `{"by":"canario`, `{"by":{"canario":1}}`, `{"by":"canario","minutes":"canario"}`, `{"by":"canario","waiting":"canario","outcome":"canario"}`}
	for _, path := range paths {
		for _, method := range []string{"GET", "POST", "DELETE", "CANARIO"} {
			for _, body := range bodies {
				a := c.send(method, path, "token-clinic", body)
				for _, word := range words {
					if strings.Contains(a.text, word) && !strings.Contains(a.text, `"turns":[]`) {
						t.Errorf("%s %.40s: the answer quotes %s: %s", method, path, word, a.text)
					}
				}
			}
		}
	}
	c.send("GET", "turns", "wrong-canario", "")
	log := c.log.String()
	for _, word := range append(words, "CANARIO") {
		if at := strings.Index(log, word); at >= 0 {
			t.Fatalf("the log quotes %s: %s", word, log[max(0, at-200):min(len(log), at+50)])
		}
	}
	if !strings.Contains(log, `"route":"/v1/projects/:project/turns"`) {
		t.Errorf("log: want routes, got %.300s", log)
	}
}

func TestQuietLog(t *testing.T) {
	t.Parallel()
	c := &clinic{T: t, log: &lockedBuffer{}}
	c.serve(NewServer(ServerOptions{Log: zerolog.New(c.log).Level(zerolog.InfoLevel), Guard: entry.NewGuard("", nil), Ready: func(context.Context) error { return nil }}))
	c.want(c.send("GET", "/healthz", "", ""), 200, "alive")
	c.want(c.send("GET", "/nothing", "", ""), 404, "no such place")
	if log := c.log.String(); log != "" {
		t.Errorf("want nothing, got %s", log)
	}
}

func TestLongHeadersAreRefused(t *testing.T) {
	t.Parallel()
	c := &clinic{T: t, log: &lockedBuffer{}}
	c.serve(NewServer(ServerOptions{Log: zerolog.Nop(), Guard: entry.NewGuard("", nil), Ready: func(context.Context) error { return nil }}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", strings.Repeat("a", 32<<10))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("want 431, got %q, %v", line, err)
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	c := &clinic{T: t, log: &lockedBuffer{}}
	c.serve(NewServer(ServerOptions{Log: zerolog.Nop(), Guard: entry.NewGuard("", nil), Ready: func(context.Context) error {
		close(entered)
		<-leave
		return nil
	}}))
	answers := make(chan int, 1)
	go func() {
		response, err := http.Get(c.url + "/readyz")
		if err != nil {
			answers <- 0
			return
		}
		response.Body.Close()
		answers <- response.StatusCode
	}()
	<-entered
	down := make(chan error, 1)
	go func() { down <- c.server.Shutdown(t.Context()) }()
	// The listener closes first: once nobody can connect any more, the shutdown is under way.
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	close(leave)
	if status := <-answers; status != 200 {
		t.Errorf("want 200, got %d", status)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}
