package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// predecessorPatience is how long a server whose process was killed may take to end.
const predecessorPatience = 10 * time.Second

// clear waits for the end of a server that an earlier process left behind, and
// removes pid files that name a process which is something else by now: Postgres
// would take it for itself and refuse to start.
func (s *site) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, predecessorPatience)
	defer cancel()
	file := filepath.Join(s.data, "postmaster.pid")
	for {
		pid := pidIn(file)
		if pid == 0 || !alive(pid) {
			return s.clearSocketLock()
		}
		if !serves(pid, s.data) {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove the pid file of a server that is gone: %w", err)
			}
			return s.clearSocketLock()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another Postgres (pid %d) runs on %s: stop it or set FILA_DATABASE_URL", pid, s.data)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// clearSocketLock removes the socket's own pid file. No server has our folder, so
// none has the socket in it.
func (s *site) clearSocketLock() error {
	err := os.Remove(filepath.Join(s.socket, ".s.PGSQL."+socketPort+".lock"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the socket's pid file: %w", err)
	}
	return nil
}

// pidIn returns the process id in a pid file, 0 when there is none.
func pidIn(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
