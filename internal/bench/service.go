package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// service is a program under load, in a process of its own.
type service struct {
	command *exec.Cmd
	url     string
	folder  string
	ended   chan struct{}
	// started is when its process began, ready how long after that it took requests; timers says how long until all that waited had a timer.
	started time.Time
	ready   time.Duration
	timers  chan time.Duration
}

// serve starts fila with this database, on a port of its choice.
func serve(ctx context.Context, o Options, database, receiver string) (*service, error) {
	folder, err := os.MkdirTemp("", "fila-bench-")
	if err != nil {
		return nil, err
	}
	var projects strings.Builder
	for n := range o.Projects {
		fmt.Fprintf(&projects, "  %s:\n    message_debounce_seconds: %g\n    concurrency: 10000\n    agent: {url: %s/agent}\n    delivery: {url: %s/delivery}\n",
			projectName(n), o.Window.Seconds(), receiver, receiver)
	}
	if o.Waiting > 0 || o.History > 0 {
		fmt.Fprintf(&projects, "  %s:\n    message_debounce_seconds: 10\n    agent: {url: %s/agent}\n    delivery: {url: %s/delivery}\n", parked, receiver, receiver)
	}
	config := filepath.Join(folder, "fila.yaml")
	if err := os.WriteFile(config, []byte("log_level: warn\nprojects:\n"+projects.String()), 0o600); err != nil {
		return nil, err
	}
	return start(ctx, folder, exec.CommandContext(context.WithoutCancel(ctx), o.Program, "serve", "--config", config),
		"FILA_LISTEN=127.0.0.1:0", "FILA_LOG_LEVEL=info", "FILA_DATABASE_URL="+database)
}

// start runs a program until it says, in a JSON line on standard error, that it is ready and where it listens.
func start(ctx context.Context, folder string, command *exec.Cmd, env ...string) (*service, error) {
	command.Env = append(os.Environ(), env...)
	said, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	s := &service{command: command, folder: folder, ended: make(chan struct{}), started: time.Now(), timers: make(chan time.Duration, 1)}
	ready := make(chan string, 1)
	var last lastLine
	go func() {
		// What it says later is read, lest it should wait for a reader, and not looked at: that would be our own work.
		for lines, heard := bufio.NewScanner(said), 0; heard < 2 && lines.Scan(); {
			var line struct{ Message, Listen string }
			last.set(lines.Text())
			if json.Unmarshal(lines.Bytes(), &line) != nil {
				continue
			}
			switch line.Message {
			case "ready":
				s.ready = time.Since(s.started)
				ready <- "http://" + line.Listen
				heard++
			case "timers stand":
				s.timers <- time.Since(s.started)
				heard++
			}
		}
		_, _ = io.Copy(io.Discard, said)
		_ = command.Wait()
		close(s.ended)
	}()
	select {
	case s.url = <-ready:
		return s, nil
	case <-s.ended:
		return nil, errors.Join(fmt.Errorf("%s ended before it was ready: %s", filepath.Base(command.Path), last.get()), os.RemoveAll(folder))
	case <-ctx.Done():
		s.stop()
		return nil, ctx.Err()
	}
}

func (s *service) stop() {
	_ = s.command.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(settleFor):
		_ = s.command.Process.Kill()
		<-s.ended
	}
	_ = os.RemoveAll(s.folder)
}

// lastLine is what a program said last.
type lastLine struct {
	mu   sync.Mutex
	text string
}

func (l *lastLine) set(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
}

func (l *lastLine) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}
