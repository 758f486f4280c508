package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bouncer puts pgbouncer in front of a test's database, in this mode (session, transaction, statement) with two connections to the
// server, and returns the address behind which it is. The test is skipped where pgbouncer is not installed.
func Bouncer(t testing.TB, database, mode string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if _, err := os.Stat("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("no pgbouncer on this machine")
		}
		program = "/usr/sbin/pgbouncer"
	}
	c, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	folder := openFolder(t)
	password := ""
	if c.Password != "" {
		password = " password='" + c.Password + "'"
	}
	configuration := filepath.Join(folder, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%d user=%s%s
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %s
auth_type = any
pool_mode = %s
default_pool_size = 2
`, c.Database, c.Host, c.Port, c.User, password, folder, mode)
	if err := os.WriteFile(configuration, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	startBouncer(t, exec.CommandContext(context.WithoutCancel(t.Context()), program, append(asWhom(t, c.Host), configuration)...))
	address := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	address.RawQuery = url.Values{"host": {folder}, "port": {"6432"}}.Encode()
	await(t, "pgbouncer does not answer", func() bool {
		conn, err := pgx.Connect(t.Context(), address.String()+"&default_query_exec_mode=exec")
		return err == nil && conn.Close(context.Background()) == nil
	})
	return address.String()
}

// openFolder is a temporary folder that a process of another user can use. A socket's path must be short.
func openFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "fila-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	return folder
}

// asWhom lets a pgbouncer that root starts run as the one to whom the server's socket is open; it refuses to run as root.
func asWhom(t testing.TB, host string) []string {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	name := "nobody"
	if info, err := os.Stat(host); err == nil {
		owner, err := user.LookupId(strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10))
		if err != nil {
			t.Fatal(err)
		}
		name = owner.Username
	}
	return []string{"-u", name}
}

func startBouncer(t testing.TB, command *exec.Cmd) {
	t.Helper()
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
}

// await asks again and again until done says yes.
func await(t testing.TB, otherwise string, done func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !done() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit:
			t.Fatal(otherwise)
		}
	}
}
