package soak_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"fila/internal/soak/history"
)

// fleet are the instances of the service: real processes, each on its own port.
type fleet struct {
	*soak
	program, config string
	slots           []*slot
}

// slot is the place of one instance, which is started again and again.
type slot struct {
	name string
	log  *os.File

	mu         sync.Mutex
	generation int
	process    *process
}

// process is one life of an instance.
type process struct {
	name  string
	cmd   *exec.Cmd
	gone  chan struct{}
	ready chan struct{}
	err   error  // of its end; written before gone is closed
	url   string // written before ready is closed

	mu     sync.Mutex
	wanted bool // its end is
}

func newFleet(s *soak, configuration string) *fleet {
	f := &fleet{soak: s, program: filepath.Join(s.folder, "fila"), config: filepath.Join(s.folder, "fila.yaml")}
	if err := os.WriteFile(f.config, []byte(configuration), 0o600); err != nil {
		s.Fatal(err)
	}
	f.build()
	for i := range instances {
		log, err := os.Create(filepath.Join(s.folder, fmt.Sprintf("%c.log", 'a'+i)))
		if err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() { _ = log.Close() })
		f.slots = append(f.slots, &slot{name: string(rune('a' + i)), log: log})
	}
	// However the test ends, its processes end first.
	s.Cleanup(func() {
		for _, slot := range f.slots {
			if p := slot.current(); p != nil {
				p.end(syscall.SIGKILL)
				<-p.gone
			}
		}
	})
	return f
}

// build makes the program, with the race detector where the test has it.
func (f *fleet) build() {
	args := []string{"build", "-buildvcs=false", "-o", f.program}
	if raced {
		args = append(args, "-race")
	}
	build := exec.CommandContext(f.Context(), "go", append(args, "fila/cmd/fila")...)
	if out, err := build.CombinedOutput(); err != nil {
		f.Fatalf("build fila: %v\n%s", err, out)
	}
}

// startAll returns when every instance serves.
func (f *fleet) startAll() {
	f.Helper()
	for _, s := range f.slots {
		f.start(s)
	}
	for _, s := range f.slots {
		p := s.current()
		select {
		case <-p.ready:
		case <-p.gone:
			f.Fatalf("instance %s ended at its start: %v", p.name, p.err)
		case <-time.After(time.Minute):
			f.Fatalf("instance %s is not ready after a minute", p.name)
		}
	}
}

func (f *fleet) start(s *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	p := &process{name: fmt.Sprintf("%s%d", s.name, s.generation), gone: make(chan struct{}), ready: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(f.Context()), f.program, "serve", "--config", f.config)
	p.cmd.Env = append(os.Environ(), "FILA_LISTEN=127.0.0.1:0", "FILA_DATABASE_URL="+f.cluster.URL("postgres"), "SOAK_INSTANCE="+p.name)
	p.cmd.Stderr = &logReader{process: p, file: s.log, soak: f.soak}
	p.cmd.SysProcAttr = endWithTest()
	if err := p.cmd.Start(); err != nil {
		f.Errorf("start instance %s: %v", p.name, err)
		return
	}
	s.process = p
	go func() {
		p.err = p.cmd.Wait()
		p.mu.Lock()
		wanted := p.wanted
		p.mu.Unlock()
		if !wanted {
			f.Errorf("instance %s ended by itself: %v", p.name, p.err)
		}
		close(p.gone)
	}()
}

func (s *slot) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// end sends a signal that ends the process, which is then no surprise.
func (p *process) end(signal syscall.Signal) {
	p.mu.Lock()
	p.wanted = true
	p.mu.Unlock()
	_ = p.cmd.Process.Signal(signal)
}

// serves says whether the process has begun to serve, and is not over.
func (p *process) serves() bool {
	select {
	case <-p.gone:
		return false
	default:
	}
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// random is the address of an instance that has begun to serve, frozen or not; empty where there is none.
func (f *fleet) random(d *dice) string {
	var urls []string
	for _, s := range f.slots {
		p := s.current()
		if p == nil {
			continue
		}
		if p.serves() {
			urls = append(urls, p.url)
		}
	}
	if len(urls) == 0 {
		return ""
	}
	return urls[d.below(len(urls))]
}

// stopAll shuts every instance down, which must end well.
func (f *fleet) stopAll() {
	f.Helper()
	var group sync.WaitGroup
	for _, s := range f.slots {
		group.Go(func() { f.shutDown(s.current()) })
	}
	group.Wait()
}

// shutDown ends a process as a deploy does. It has the time that the configuration gives it, and some for a busy machine; one
// that has only just begun may not know the signal yet.
func (f *fleet) shutDown(p *process) {
	begun := p.serves()
	p.end(syscall.SIGTERM)
	select {
	case <-p.gone:
		if p.err != nil && begun {
			f.Errorf("instance %s did not shut down well: %v", p.name, p.err)
		}
	case <-time.After(30 * time.Second):
		f.Errorf("instance %s did not shut down within 30 s", p.name)
		p.end(syscall.SIGKILL)
		<-p.gone
	}
}

// outage notes when an instance, or with no name all of them, could not keep what it held.
func (f *fleet) outage(instance string, from time.Duration) {
	note(f.record, outages, history.Outage{Instance: instance, Span: history.Span{Invoke: from, Return: f.record.now()}})
}

// up says whether every instance serves.
func (f *fleet) up() bool {
	return !slices.ContainsFunc(f.slots, func(s *slot) bool {
		return !s.current().serves()
	})
}
