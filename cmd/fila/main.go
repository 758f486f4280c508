// Fila is the service and its command line in one program; `fila --help` lists the commands.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

func main() {
	// Milliseconds: what happens here within one second is worth telling apart.
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}

// run runs one command and returns the exit code of the process: 0 done, 1 failed, 2 bad usage or configuration.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	c := &cli{stdin: stdin, stdout: stdout, stderr: stderr, env: env}
	root := newRoot(c) //nolint:contextcheck // a command gets the context when it is run
	// Never nil: cobra would take the arguments of the process.
	root.SetArgs(append([]string{}, args...))
	err := readable(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	for _, line := range lines(err) {
		fmt.Fprintln(stderr, line)
	}
	return exitCode(err)
}

// readable refuses what no text of ours can hold.
func readable(root *cobra.Command, args []string) error {
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			return usagef(root, "argument %d is not UTF-8", i+1)
		}
	}
	return nil
}
