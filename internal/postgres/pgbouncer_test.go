package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/queue"
	"fila/internal/turn"
)

// bouncer puts pgbouncer in front of a test's database, in transaction mode with two connections to the server, and returns
// the address behind which it is.
func bouncer(t *testing.T, database string) string {
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
pool_mode = transaction
default_pool_size = 2
`, c.Database, c.Host, c.Port, c.User, password, folder)
	if err := os.WriteFile(configuration, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, exec.Command(program, append(asWhom(t, c.Host), configuration)...))
	address := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	address.RawQuery = url.Values{"host": {folder}, "port": {"6432"}}.Encode()
	await(t, "pgbouncer does not answer", func() bool {
		conn, err := pgx.Connect(t.Context(), address.String()+"&default_query_exec_mode=exec")
		return err == nil && conn.Close(context.Background()) == nil
	})
	return address.String()
}

// openFolder is a temporary folder that a process of another user can use. A socket's path must be short.
func openFolder(t *testing.T) string {
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
func asWhom(t *testing.T, host string) []string {
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

func start(t *testing.T, command *exec.Cmd) {
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
func await(t *testing.T, otherwise string, done func() bool) {
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

func openProject(t *testing.T, pool *postgres.Pool, name string) {
	t.Helper()
	const open = `SELECT fila_open_project($1, 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`
	if _, err := pool.Exec(t.Context(), open, name); err != nil {
		t.Fatal(err)
	}
}

func push(t *testing.T, pool *postgres.Pool, project, phone, text string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	q := queue.New(queue.Options{Pool: pool, Log: zerolog.Nop()})
	var ran sync.WaitGroup
	ran.Go(func() { _ = q.Run(ctx) })
	defer ran.Wait()
	defer cancel()
	if _, err := q.Push(t.Context(), []queue.Message{{Project: project, Phone: phone, Address: phone, Text: text, Kind: "text"}}); err != nil {
		t.Fatal(err)
	}
}

func TestThroughAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	direct := pgtest.Empty(t)
	address := bouncer(t, direct)
	for range 2 {
		if _, err := postgres.Migrate(t.Context(), address); err != nil {
			t.Fatal(err)
		}
	}
	if pending(t, address) {
		t.Error("something is missing after the migration")
	}
	pool := open(t, postgres.Options{URL: address, MaxConns: 8, Name: "fila"})
	openProject(t, pool, "clinic")

	q := queue.New(queue.Options{Pool: pool, Log: zerolog.Nop(), Writers: 4, Patience: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	var all, ran sync.WaitGroup
	ran.Go(func() { _ = q.Run(ctx) })
	defer ran.Wait()
	defer cancel()
	store := turn.NewStore(pool, "instance-1", time.Minute)
	for worker := range 16 {
		all.Go(func() {
			for n := range 20 {
				if err := converse(t.Context(), q, store, fmt.Sprintf("55319%08d", worker*100+n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := value[int](t, pool, "SELECT count(*)::integer FROM turns WHERE state = 'replied'"); n != 16*20 {
		t.Errorf("%d turns were answered", n)
	}
	if n := count(t, direct, "SELECT count(*) FROM fila_mensagens"); n != 0 {
		t.Errorf("%d messages wait", n)
	}
}

// converse takes one message through every statement of a turn.
func converse(ctx context.Context, q *queue.Queue, store *turn.Store, phone string) error {
	receipts, err := q.Push(ctx, []queue.Message{{Project: "clinic", ID: "wamid." + phone, Phone: phone, Address: phone, Text: "oi", Kind: "text"}})
	if err != nil || receipts[0].Status != queue.Queued {
		return fmt.Errorf("push: %v, %w", receipts, err)
	}
	var drained []turn.Drained
	for {
		if drained, err = store.Drain(ctx, "clinic", []string{phone}); err != nil {
			return fmt.Errorf("drain: %w", err)
		} else if len(drained) != 1 || drained[0].Verdict != turn.Busy {
			break
		}
	}
	if drained[0].Verdict != turn.Begun || drained[0].Work.Text != "oi" {
		return fmt.Errorf("drained %+v", drained)
	}
	claimed, err := store.Claim(ctx, "clinic", 1)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	// Replies that are kept but not sent may be claimed again; that of this turn cannot be there yet.
	if slices.ContainsFunc(claimed, func(w turn.Work) bool { return w.ID == drained[0].Turn }) {
		return errors.New("a leased turn was claimed")
	}
	attempt := drained[0].Work.Attempt
	verdict, err := store.Reply(ctx, "clinic", drained[0].Turn, &attempt, turn.Reply{Text: "olá", Parts: []string{"olá"}})
	if err != nil || verdict != "held" {
		return fmt.Errorf("reply: %s, %w", verdict, err)
	}
	return nil
}
