package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// site is the folder of a cluster and what is where in it.
type site struct {
	folder  string
	data    string
	socket  string
	account account
	// behind is the first folder on the way to ours that the account may not
	// enter, such as root's home; "" when the way is open.
	behind string
	// handles are the data and the socket folder, opened for a server that could
	// not walk to them; none when the way is open.
	handles []*os.File
}

// The descriptors under which a server finds its handles: the first behind the
// three that every process has.
const (
	dataHandle   = 3
	socketHandle = 4
)

// openSite finds the user to run as and makes the folder of the socket.
func openSite(folder string) (*site, error) {
	s := &site{folder: folder, data: filepath.Join(folder, "data")}
	var err error
	if s.account, err = accountFor(s.data); err != nil {
		return nil, err
	}
	if s.behind = s.account.barrier(folder); s.behind != "" && !canHandOver {
		return nil, fmt.Errorf("user %s, whom Postgres runs as, may not enter %s: put %s elsewhere, run as another user than root, or set FILA_DATABASE_URL",
			s.account.name, s.behind, folder)
	}
	if s.socket, err = socketFolder(s.ownSocket(), folder, s.account); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *site) ownSocket() string { return filepath.Join(s.folder, "socket") }

func (s *site) log() string { return filepath.Join(s.folder, "postgres.log") }

// all lists the folders that are the site's.
func (s *site) all() []string {
	if s.socket == s.ownSocket() {
		return []string{s.folder}
	}
	return []string{s.folder, s.socket}
}

// seen is the path under which the server knows a folder: its own, or that of the
// open descriptor that spares it the way there.
func (s *site) seen(path string, handle int) string {
	if s.behind == "" {
		return path
	}
	return handlePath(handle)
}

// handed are the files that a server inherits.
func (s *site) handed() []*os.File { return s.handles }

func (s *site) close() error {
	var errs []error
	for _, handle := range s.handles {
		errs = append(errs, handle.Close())
	}
	s.handles = nil
	return errors.Join(errs...)
}

// admit checks that the account may run the binaries.
func (s *site) admit(b Binaries) error {
	if barrier := s.account.barrier(b.Folder); barrier != "" {
		return fmt.Errorf("user %s, whom Postgres runs as, may not enter %s, where its binaries are: install Postgres for every user, or name a folder in FILA_POSTGRES_BIN",
			s.account.name, barrier)
	}
	return nil
}

// major is the version of the data, 0 when there is none yet.
func (s *site) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(s.data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("data in %s has the version %q, which is no number: move the folder away, or set FILA_DATABASE_URL", s.data, text)
	}
	return major, nil
}

// initialise makes the data folder unless there is one, and refuses one of
// another version.
func (s *site) initialise(ctx context.Context, b Binaries, durable bool) error {
	major, err := s.major()
	if err != nil {
		return err
	}
	if major == 0 {
		if err := s.initdb(ctx, b, durable); err != nil {
			return err
		}
	} else if major != b.Major {
		return fmt.Errorf("data in %s is of Postgres %d, the binaries in %s are of %d: install Postgres %d or name its bin folder in FILA_POSTGRES_BIN, move the data away to begin anew, or set FILA_DATABASE_URL",
			s.data, major, b.Folder, b.Major, major)
	}
	return s.openHandles()
}

// initdb makes the data in a folder aside, so that a half-made one is never taken
// for data.
func (s *site) initdb(ctx context.Context, b Binaries, durable bool) error {
	fresh := s.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove half-made data: %w", err)
	}
	if err := s.account.own(fresh); err != nil {
		return err
	}
	handle, err := os.Open(fresh)
	if err != nil {
		return fmt.Errorf("open the new data folder: %w", err)
	}
	defer handle.Close()

	args := []string{"-D", s.seen(fresh, dataHandle), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"}
	if !durable {
		args = append(args, "--no-sync")
	}
	cmd := s.command(ctx, b.path("initdb"), args...)
	cmd.ExtraFiles = []*os.File{handle}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initialise the private Postgres in %s as user %s: %w: %s", s.data, s.account.name, err, lastLine(string(out)))
	}
	if err := os.Rename(fresh, s.data); err != nil {
		return fmt.Errorf("put the new data in its place: %w", err)
	}
	return nil
}

func (s *site) openHandles() error {
	if s.behind == "" {
		return nil
	}
	for _, path := range []string{s.data, s.socket} {
		handle, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("open a folder for Postgres: %w", err)
		}
		s.handles = append(s.handles, handle)
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// owner returns whose a path is.
func owner(info fs.FileInfo) (uid, gid uint32) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid, stat.Gid
	}
	return 0, 0
}
