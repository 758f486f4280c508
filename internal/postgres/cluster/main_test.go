package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"fila/internal/postgres/cluster"
)

// ownerFolder, when set, makes the test program a process that owns a cluster
// until it is killed or its input ends.
const ownerFolder = "CLUSTER_TEST_OWNER_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(ownerFolder); folder != "" {
		os.Exit(own(folder))
	}
	os.Exit(m.Run())
}

func own(folder string) int {
	c, err := cluster.Start(context.Background(), cluster.Options{
		Folder: folder, Durable: true, Temporary: os.Getenv("CLUSTER_TEST_TEMPORARY") != "", Log: zerolog.Nop(),
	})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("pid", c.PID())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := c.Stop(context.Background()); err != nil {
		return 1
	}
	return 0
}

// owner is another process that runs a cluster.
type owner struct {
	cmd  *exec.Cmd
	says string // its first line
}

func startOwner(t *testing.T, folder string, env ...string) *owner {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), ownerFolder+"="+folder), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	o := &owner{cmd: cmd}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	o.says = strings.TrimSpace(line)
	return o
}

// postgres is the process id of the server it runs.
func (o *owner) postgres(t *testing.T) int {
	t.Helper()
	var pid int
	if _, err := fmt.Sscanf(o.says, "pid %d", &pid); err != nil {
		t.Fatalf("the other process says %q, want a pid", o.says)
	}
	return pid
}

func (o *owner) kill(t *testing.T) {
	t.Helper()
	must(t, o.cmd.Process.Kill())
	_ = o.cmd.Wait()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// start runs a cluster until the end of the test.
func start(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	options.Log = zerolog.New(zerolog.NewTestWriter(t))
	c, err := cluster.Start(t.Context(), options)
	must(t, err)
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	must(t, c.Stop(ctx))
}

func exec1(ctx context.Context, url, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(context.Background())
	var value string
	must(t, conn.QueryRow(t.Context(), sql).Scan(&value))
	return value
}
