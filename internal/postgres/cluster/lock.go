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

// ErrInUse says that another process runs the server of this folder.
var ErrInUse = errors.New("in use by another fila")

const (
	lockName = "fila.lock"
	// lockPatience covers a predecessor that was killed this very moment.
	lockPatience = 2 * time.Second
)

// lock is held by the process whose folder it is. The kernel gives it back when
// that process dies. The file is never removed: two could then hold one each.
type lock struct{ file *os.File }

func acquire(ctx context.Context, folder string) (*lock, error) {
	path := filepath.Join(folder, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the private Postgres: %w", err)
	}
	if err := flock(ctx, file); err != nil {
		file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		pid, _, _ := readNote(path)
		return nil, fmt.Errorf("%s is %w (pid %d): stop it or set FILA_DATABASE_URL", folder, ErrInUse, pid)
	}
	l := &lock{file: file}
	if err := l.note(""); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func flock(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return syscall.EWOULDBLOCK
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// note writes who holds the lock and where the socket is, for other processes.
func (l *lock) note(socket string) error {
	text := fmt.Sprintf("%d\n%s\n", os.Getpid(), socket)
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write the lock of the private Postgres: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("write the lock of the private Postgres: %w", err)
	}
	return nil
}

func (l *lock) release() error { return l.file.Close() }

func readNote(path string) (pid int, socket string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, "", err
	}
	lines := strings.SplitN(string(text), "\n", 3)
	if pid, err = strconv.Atoi(lines[0]); err != nil || len(lines) < 2 {
		return 0, "", fmt.Errorf("%s does not say who holds it", path)
	}
	return pid, lines[1], nil
}
