package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fila/internal/postgres/cluster"
)

// gone says whether a process has ended, be it that its parent has not yet asked how.
func gone(pid int) bool {
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return strings.Contains(string(status), ") Z ")
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestKilledServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	c := start(t, cluster.Options{Folder: t.TempDir(), Durable: true})
	must(t, exec1(t.Context(), c.URL("postgres"), "create table kept as select 'yes' as answer"))
	killed := c.PID()
	must(t, syscall.Kill(killed, syscall.SIGKILL))

	eventually(t, "the server answers again", func() bool {
		return c.PID() != killed && exec1(t.Context(), c.URL("postgres"), "select 1") == nil
	})
	if got := query(t, c.URL("postgres"), "select answer from kept"); got != "yes" {
		t.Errorf("got %q", got)
	}
}

func TestServerThatWillNotStayUpIsGivenUp(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := start(t, cluster.Options{Folder: folder})
	must(t, os.Rename(filepath.Join(folder, "data", "global"), filepath.Join(folder, "data", "lost")))
	must(t, syscall.Kill(c.PID(), syscall.SIGKILL))

	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "postgres.log") {
		t.Errorf("got %v, want why and where to look", err)
	}
	stop(t, c)
	if pid := c.PID(); pid != 0 {
		t.Errorf("pid is still %d", pid)
	}
}

func TestStopWhileStartingAgain(t *testing.T) {
	t.Parallel()
	c := start(t, cluster.Options{Folder: t.TempDir()})
	must(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	stop(t, c)
	if err := c.Err(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestKilledParent(t *testing.T) {
	t.Parallel()

	t.Run("takes the server along", func(t *testing.T) {
		t.Parallel()
		o := startOwner(t, t.TempDir())
		pid := o.postgres(t)
		o.kill(t)
		eventually(t, "the server is gone", func() bool { return gone(pid) })
	})

	t.Run("can be replaced at once", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		o := startOwner(t, folder)
		o.postgres(t)
		url, ok := cluster.Running(t.Context(), folder)
		if !ok {
			t.Fatal("the server does not answer")
		}
		must(t, exec1(t.Context(), url, "create table kept as select 'yes' as answer"))
		for range 3 {
			o.kill(t)
			o = startOwner(t, folder)
			o.postgres(t)
		}
		if got := query(t, url, "select answer from kept"); got != "yes" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("together with its server can be replaced at once", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		o := startOwner(t, folder)
		must(t, syscall.Kill(o.postgres(t), syscall.SIGKILL))
		o.kill(t)
		start(t, cluster.Options{Folder: folder, Durable: true})
	})

	t.Run("leaves no temporary folder", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "temporary")
		o := startOwner(t, folder, "CLUSTER_TEST_TEMPORARY=yes")
		o.postgres(t)
		o.kill(t)
		eventually(t, "the folder is gone", func() bool {
			_, err := os.Stat(folder)
			return errors.Is(err, os.ErrNotExist)
		})
	})
}

// A server whose end nobody has asked about keeps its number, and Postgres takes
// the number in its pid file for that of a running server.
func TestPidFileOfAnUnreapedProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	stop(t, start(t, cluster.Options{Folder: folder}))
	dead := exec.Command("true")
	must(t, dead.Start())
	t.Cleanup(func() { _ = dead.Wait() })
	eventually(t, "the process has ended", func() bool { return gone(dead.Process.Pid) })
	must(t, os.WriteFile(filepath.Join(folder, "data", "postmaster.pid"), fmt.Appendln(nil, dead.Process.Pid), 0o600))
	start(t, cluster.Options{Folder: folder})
}
