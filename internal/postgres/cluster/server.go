package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// server is one run of the postgres program.
type server struct {
	cmd      *exec.Cmd
	watchdog *watchdog
	log      string
	logStart int64 // where this run's lines begin
}

// startServer starts postgres and the watchdog that ends it when this process
// dies; the watchdog then removes the doomed folders. The caller must keep its
// thread until the server has ended.
func startServer(place *site, binaries Binaries, settings []string, doomed []string) (*server, error) {
	out, size, err := openLog(place.log())
	if err != nil {
		return nil, err
	}
	defer out.Close()

	// No context: the server ends when Stop says so, not with who started it.
	cmd := place.command(context.Background(), binaries.path("postgres"), settings...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = place.handed()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s as user %s: %w", cmd.Path, place.account.name, err)
	}
	dog, err := watch(cmd.Process.Pid, doomed)
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return &server{cmd: cmd, watchdog: dog, log: place.log(), logStart: size}, nil
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// signal may come too late, when the server has just ended: that is no error.
func (s *server) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

// wait returns when the server has ended, with the exit status and its last
// complaint.
func (s *server) wait() error {
	err := s.cmd.Wait()
	s.watchdog.dismiss()
	status := s.cmd.ProcessState.String()
	if err != nil && s.cmd.ProcessState == nil {
		status = err.Error()
	}
	if line := lastComplaint(s.log, s.logStart); line != "" {
		return fmt.Errorf("postgres ended (%s): %s", status, line)
	}
	return fmt.Errorf("postgres ended (%s)", status)
}

// logLimit is when the log is put aside; the one put aside before is lost.
const logLimit = 4 << 20

func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, fmt.Errorf("put Postgres's log aside: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open Postgres's log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open Postgres's log: %w", err), file.Close())
	}
	return file, info.Size(), nil
}

// lastComplaint returns the text of the last FATAL or PANIC line written behind
// start; "" when there is none or the log cannot be read.
func lastComplaint(path string, start int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, start, logLimit))
	if err != nil {
		return ""
	}
	last := ""
	for line := range strings.Lines(string(text)) {
		for _, level := range []string{"FATAL:", "PANIC:"} {
			if _, complaint, found := strings.Cut(line, level); found {
				last = strings.TrimSpace(complaint)
			}
		}
	}
	return last
}

// environment is ours without what would steer Postgres behind our back, and in
// the language that the code can read.
func environment() []string {
	kept := []string{"LC_ALL=C"}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PG") && !strings.HasPrefix(pair, "LC_") && !strings.HasPrefix(pair, "LANG") {
			kept = append(kept, pair)
		}
	}
	return kept
}
