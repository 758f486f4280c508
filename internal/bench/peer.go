package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	statement "fila/sql"
)

// Peer is what the service is compared with, served until ctx ends: echo, or sleeper (the environment says how). When it listens it
// says so as the service does, to log.
func Peer(ctx context.Context, role string, env func(string) (string, bool), log io.Writer) error {
	var handler http.Handler
	switch role {
	case "echo":
		handler = http.HandlerFunc(echo)
	case "sleeper":
		s, err := newSleeper(ctx, env)
		if err != nil {
			return err
		}
		defer s.pool.Close()
		handler = s
	default:
		return fmt.Errorf("%q is no peer: echo or sleeper", role)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: settleFor}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(log, `{"message":"ready","listen":%q}`+"\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// message is what the old design reads of one.
type message struct{ ID, Phone, Text string }

func echo(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte(`{"messages":[{"id":"` + m.ID + `","status":"queued","reason":null}]}`))
}

// sleeper is the old design: insert, answer, sleep in a goroutine of the message's own, take what lies there, ask.
type sleeper struct {
	pool   *pgxpool.Pool
	window time.Duration
	agent  string
	ctx    context.Context
}

// sleeperConns is what the old design was given.
const sleeperConns = "32"

func newSleeper(ctx context.Context, env func(string) (string, bool)) (*sleeper, error) {
	database, _ := env("FILA_DATABASE_URL")
	text, _ := env("FILA_BENCH_WINDOW")
	agent, _ := env("FILA_BENCH_AGENT")
	window, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("FILA_BENCH_WINDOW: %w", err)
	}
	pool, err := pgxpool.New(ctx, database+separator(database)+"pool_max_conns="+sleeperConns)
	if err != nil {
		return nil, err
	}
	return &sleeper{pool: pool, window: window, agent: agent, ctx: ctx}, nil
}

func (s *sleeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := s.pool.Exec(r.Context(), statement.Named("bench_old_push"), m.ID, m.Phone, m.Text); err != nil {
		fmt.Fprintln(os.Stderr, "insert:", err)
		http.Error(w, "not stored", http.StatusServiceUnavailable)
		return
	}
	go s.sleep(m.Phone)
	w.WriteHeader(http.StatusAccepted)
}

func (s *sleeper) sleep(phone string) {
	pause(s.ctx, s.window)
	rows, err := s.pool.Query(s.ctx, statement.Named("bench_old_take"), phone)
	if err != nil {
		return
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(texts) == 0 {
		return
	}
	body, err := json.Marshal(map[string]any{"turn_id": "1", "phone": phone, "text": strings.Join(texts, " ")})
	if err != nil {
		return
	}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.agent, bytes.NewReader(body))
	if err != nil {
		return
	}
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
	}
}
