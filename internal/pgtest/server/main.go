// Server runs a command, such as go test ./..., on a Postgres that it starts for
// it and that is gone afterwards:
//
//	go run ./internal/pgtest/server -- go test ./...
//
// Every package's tests are a program of their own, and would otherwise start a
// server each. FILA_TEST_DATABASE_URL names the server to the command. If it is
// set already, the command runs on that one; else in a container if a Docker
// engine answers; else on the machine's own Postgres.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"fila/internal/pgtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests' Postgres:", err)
	}
	os.Exit(code)
}

// run returns the command's exit code.
func run(ctx context.Context, args []string, notes io.Writer) (int, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 2, errors.New("no command is given; write server -- followed by one, such as go test")
	}
	if os.Getenv(pgtest.URLVariable) != "" {
		return command(ctx, args, os.Environ())
	}
	server, err := choose(ctx, notes)
	if err != nil {
		return 1, err
	}
	code, err := command(ctx, args, append(os.Environ(), pgtest.URLVariable+"="+server.url, pgtest.TemporaryVariable+"=1"))
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return code, errors.Join(err, server.stop(late))
}

// server is a Postgres for tests.
type server struct {
	url  string
	stop func(context.Context) error
}

// choose starts a container, or else a server of the machine's own.
func choose(ctx context.Context, notes io.Writer) (server, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // an image may have to be fetched
	defer cancel()
	if engine(ctx) == nil {
		s, err := container(ctx)
		if err == nil {
			fmt.Fprintln(notes, "tests run on Postgres in a container")
			return s, nil
		}
		fmt.Fprintf(notes, "tests do not run in a container: %v\n", err)
	}
	c, err := pgtest.Local(ctx)
	if err != nil {
		return server{}, fmt.Errorf("%w; or start Docker, or set %s", err, pgtest.URLVariable)
	}
	fmt.Fprintln(notes, "tests run on this machine's own Postgres")
	return server{url: c.URL("postgres"), stop: c.Stop}, nil
}

// command runs to its end; a signal to us interrupts it and is waited for.
func command(ctx context.Context, args, env []string) (int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil // the command has said why
	}
	if err != nil {
		return 1, fmt.Errorf("run %s: %w", args[0], err)
	}
	return 0, nil
}
