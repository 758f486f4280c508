package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fila/internal/postgres/cluster"
)

func TestStart(t *testing.T) {
	t.Parallel()

	t.Run("keeps the data from one run to the next", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		c := start(t, cluster.Options{Folder: folder, Durable: true})
		must(t, exec1(t.Context(), c.URL("postgres"), "create database clinic"))
		must(t, exec1(t.Context(), c.URL("clinic"), "create table kept as select 'yes' as answer"))
		stop(t, c)
		if err := c.Err(); err != nil {
			t.Errorf("after Stop, Err is %v", err)
		}
		stop(t, c)

		again := start(t, cluster.Options{Folder: folder, Durable: true})
		if got := query(t, again.URL("clinic"), "select answer from kept"); got != "yes" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("takes settings", func(t *testing.T) {
		t.Parallel()
		c := start(t, cluster.Options{Folder: t.TempDir(), Settings: map[string]string{"max_connections": "17"}})
		for setting, want := range map[string]string{
			"max_connections": "17", "fsync": "off", "listen_addresses": "", "TimeZone": "UTC", "max_locks_per_transaction": "256",
			"deadlock_timeout": "200ms", "log_error_verbosity": "terse", "log_min_error_statement": "panic",
		} {
			if got := query(t, c.URL("postgres"), "select current_setting('"+setting+"')"); got != want {
				t.Errorf("%s is %q, want %q", setting, got, want)
			}
		}
	})

	t.Run("syncs when durable", func(t *testing.T) {
		t.Parallel()
		c := start(t, cluster.Options{Folder: t.TempDir(), Durable: true})
		if got := query(t, c.URL("postgres"), "select current_setting('fsync') || current_setting('synchronous_commit')"); got != "onon" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("puts the socket elsewhere when the folder's path is too long", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
		c := start(t, cluster.Options{Folder: folder})
		if got := query(t, c.URL("postgres"), "select 'yes'"); got != "yes" {
			t.Errorf("got %q", got)
		}
		if url, ok := cluster.Running(t.Context(), folder); !ok || url != c.URL("postgres") {
			t.Errorf("Running finds %q, %v; want %q", url, ok, c.URL("postgres"))
		}
	})

	t.Run("stands commas, spaces and quotes in the folder's path", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"a,b", "a b", `a"b`, "a'b", "á%20"} {
			c := start(t, cluster.Options{Folder: filepath.Join(t.TempDir(), name)})
			if got := query(t, c.URL("postgres"), "select 'yes'"); got != "yes" {
				t.Errorf("%s: got %q", name, got)
			}
		}
	})

	t.Run("says at once what Postgres does not like", func(t *testing.T) {
		t.Parallel()
		_, err := cluster.Start(t.Context(), cluster.Options{
			Folder: t.TempDir(), Settings: map[string]string{"max_connections": "many"},
		})
		if err == nil || !strings.Contains(err.Error(), "max_connections") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("gives up with its context", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := cluster.Start(ctx, cluster.Options{Folder: t.TempDir()}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("removes a temporary folder on Stop", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "temporary")
		stop(t, start(t, cluster.Options{Folder: folder, Temporary: true}))
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
	})
}

func TestStartRefusesDataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	stop(t, start(t, cluster.Options{Folder: folder}))
	must(t, os.WriteFile(filepath.Join(folder, "data", "PG_VERSION"), []byte("11\n"), 0o600))

	_, err := cluster.Start(t.Context(), cluster.Options{Folder: folder})
	found, findErr := cluster.Find(t.Context())
	must(t, findErr)
	for _, want := range []string{"Postgres 11", strconv.Itoa(found.Major), "FILA_POSTGRES_BIN", "FILA_DATABASE_URL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

func TestStartTwiceOnOneFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other := startOwner(t, folder)
	other.postgres(t)

	_, err := cluster.Start(t.Context(), cluster.Options{Folder: folder})
	if !errors.Is(err, cluster.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", other.cmd.Process.Pid)) {
		t.Errorf("got %v, want that it is in use, and by which pid", err)
	}
	if url, ok := cluster.Running(t.Context(), folder); !ok || query(t, url, "select 'yes'") != "yes" {
		t.Errorf("the refused start disturbed the running server: %q, %v", url, ok)
	}
}

func TestRunning(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if url, ok := cluster.Running(t.Context(), folder); ok {
		t.Errorf("found %q in an empty folder", url)
	}
	c := start(t, cluster.Options{Folder: folder})
	if url, ok := cluster.Running(t.Context(), folder); !ok || url != c.URL("postgres") {
		t.Errorf("found %q, %v; want %q", url, ok, c.URL("postgres"))
	}
	stop(t, c)
	if url, ok := cluster.Running(t.Context(), folder); ok {
		t.Errorf("found %q, which has stopped", url)
	}
}

func TestStalePidFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		pid  int
	}{
		{"another process", os.Getpid()},
		{"no process", 1 << 22},
		{"no number", -7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			stop(t, start(t, cluster.Options{Folder: folder}))
			for _, file := range []string{"data/postmaster.pid", "socket/.s.PGSQL.5432.lock"} {
				text := fmt.Sprintf("%d\n%s\n", tt.pid, filepath.Join(folder, "data"))
				must(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644))
			}
			start(t, cluster.Options{Folder: folder})
		})
	}
}

// What a patient writes must not be found in the server's log, whatever goes wrong.
func TestLogHoldsNoData(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := start(t, cluster.Options{Folder: folder})
	url := c.URL("postgres")
	must(t, exec1(t.Context(), url, "create table message (phone text not null unique, text text not null)"))
	for _, failing := range []string{
		"insert into message values ('canary', null)",
		"insert into message values ('canary', 'a'), ('canary', 'b')",
		"select 'canary' from nowhere",
		"select cast('canary' || 'x' as text) from message where 1/(select 0) = 1",
	} {
		if exec1(t.Context(), url, failing) == nil {
			t.Errorf("%s succeeded", failing)
		}
	}
	if exec1(t.Context(), url, "insert into message values ($1, $2)", "canary", nil) == nil {
		t.Error("a null was accepted")
	}
	stop(t, c)
	log, err := os.ReadFile(filepath.Join(folder, "postgres.log"))
	must(t, err)
	if text := string(log); strings.Contains(text, "canary") || !strings.Contains(text, "ERROR:") {
		t.Errorf("the log should hold the errors without their data:\n%s", text)
	}
}

func TestServerIsClosedToOthers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	start(t, cluster.Options{Folder: folder})
	for _, name := range []string{"data", "socket"} {
		info, err := os.Stat(filepath.Join(folder, name))
		must(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
			t.Errorf("%s belongs to root", name)
		}
	}
}
