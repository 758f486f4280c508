// Package cluster runs a Postgres server of our own, as a child process, in a
// folder of our own: for whoever tries the service without a database at hand,
// and for its tests.
//
// The server listens on a unix socket only, in a folder closed to other users,
// so that it needs neither a port nor a password. It never outlives this
// process, however this process ends, and is started again when it ends by itself.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// Options say where and how a server runs.
type Options struct {
	// Folder holds everything: the data, the socket, the log, the lock. It is
	// created when missing and serves one process at a time.
	Folder string
	// Binaries are those to run. When zero they are looked for, those of the
	// data's own version first, and downloaded into Folder when there are none.
	Binaries Binaries
	// Log receives what happens to the server. Postgres's own lines go to
	// postgres.log in Folder.
	Log zerolog.Logger
	// Durable makes every commit reach the disk. Without it the server is fast,
	// and a crash of the machine may ruin the data.
	Durable bool
	// Temporary removes Folder when the server stops, and also when this process
	// is killed.
	Temporary bool
	// Settings are server parameters that win over the package's own.
	Settings map[string]string
}

// Cluster is a running server.
type Cluster struct {
	site     *site
	lock     *lock
	binaries Binaries
	options  Options

	done chan struct{}
	err  error // why it ended by itself; written before done is closed

	stop     chan struct{} // closed once by Stop
	answered chan struct{} // closed once the server has answered for the first time

	mu      sync.Mutex
	current *server // nil while none runs
}

// Start brings the server up and returns once it answers queries. The context
// bounds the start alone: the server then runs until Stop. An error says what to
// do; it wraps [ErrInUse] when another process has the folder and [ErrNoBinaries]
// when there is no Postgres to run.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	folder, err := makeFolder(options.Folder)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(ctx, folder)
	if err != nil {
		return nil, err
	}
	site, err := openSite(folder)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	c := &Cluster{
		site: site, lock: lock, options: options,
		done: make(chan struct{}), stop: make(chan struct{}), answered: make(chan struct{}),
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// makeFolder returns the absolute path of the folder, free of symbolic links, so
// that everyone who names it means the same one.
func makeFolder(path string) (string, error) {
	if path == "" {
		return "", errors.New("the private Postgres has no folder: name one")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("folder of the private Postgres: %w", err)
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return "", fmt.Errorf("create the folder of the private Postgres: %w", err)
	}
	return filepath.EvalSymlinks(absolute)
}

// start leaves nothing behind when it fails.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		c.leave()
		return err
	}
	go c.supervise() //nolint:contextcheck // The server outlives the call that starts it; Stop ends it.
	err := c.await(ctx)
	if err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = c.Stop(late) // why it did not start says more than how it ended
	}
	return err
}

// prepare does what comes before the first start: the binaries, the data, the
// remains of an earlier server.
func (c *Cluster) prepare(ctx context.Context) error {
	var err error
	if c.binaries, err = c.choose(ctx); err != nil {
		return err
	}
	if err := c.site.admit(c.binaries); err != nil {
		return err
	}
	if err := c.site.initialise(ctx, c.binaries, c.options.Durable); err != nil {
		return err
	}
	if err := c.site.clear(ctx); err != nil {
		return err
	}
	if c.site.socket != c.site.ownSocket() {
		c.options.Log.Info().Str("folder", c.site.socket).
			Msg("socket of the private Postgres is elsewhere: the path of its own folder is too long for one")
	}
	return c.lock.note(c.site.socket)
}

// choose returns the binaries to run.
func (c *Cluster) choose(ctx context.Context) (Binaries, error) {
	if c.options.Binaries != (Binaries{}) {
		return c.options.Binaries, nil
	}
	major, err := c.site.major()
	if err != nil {
		return Binaries{}, err
	}
	found, err := localPlaces().find(ctx, major)
	if !errors.Is(err, ErrNoBinaries) {
		return found, err
	}
	c.options.Log.Info().Str("version", downloadVersion).Msg("no Postgres on this machine: getting one")
	got, failure := download(ctx, filepath.Join(c.site.folder, "binaries"), downloadRepository)
	if failure != nil {
		return Binaries{}, fmt.Errorf("%w (downloading one failed: %w)", err, failure)
	}
	return got, nil
}

// URL returns the address of one of the server's databases, for its superuser.
func (c *Cluster) URL(database string) string { return socketURL(c.site.socket, database) }

// Done is closed when the server has ended for good.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err says, once Done is closed, why the server ended by itself; nil after Stop.
func (c *Cluster) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// PID is the process id of the server, 0 while none runs. It changes when the
// server has been started again.
func (c *Cluster) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return 0
	}
	return c.current.pid()
}

// Stop ends the server: sessions are cut off, what was committed is on the disk.
// When ctx ends first, the server is made to end at once, which is safe too but
// makes the next start slower, and ctx's error is returned. Stopping twice is harmless.
func (c *Cluster) Stop(ctx context.Context) error {
	c.signal(syscall.SIGINT)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	c.signal(syscall.SIGQUIT)
	select {
	case <-c.done:
	case <-time.After(5 * time.Second):
		c.signal(syscall.SIGKILL)
		<-c.done
	}
	return fmt.Errorf("the private Postgres did not stop in time and was made to: %w", ctx.Err())
}

// signal announces that the server's end is wanted, then asks for it.
func (c *Cluster) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping() {
		close(c.stop)
	}
	if c.current != nil {
		c.current.signal(s)
	}
}

func (c *Cluster) stopping() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// await returns once the server answers.
func (c *Cluster) await(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ping(ctx, c.URL("postgres")) == nil {
			close(c.answered)
			return nil
		}
		select {
		case <-c.done:
			return c.err
		case <-ctx.Done():
			return fmt.Errorf("the private Postgres in %s did not answer in time; see %s: %w",
				c.site.folder, c.site.log(), context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// command is a program of Postgres's, run as the user that the data belongs to.
func (s *site) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environment()
	cmd.Dir = "/"
	cmd.SysProcAttr = s.account.attributes()
	return cmd
}
