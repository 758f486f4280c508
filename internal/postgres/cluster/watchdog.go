package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdogScript waits on its input. A line means that the server has ended and
// there is nothing to guard; the end of the input, that the process that held the
// other end of the pipe is dead, even if it was killed. The shell is the one
// program that every Unix has.
const watchdogScript = `
pid=$1; shift
read -r _ && exit 0
kill -QUIT "$pid" 2>/dev/null
for _ in 1 2 3 4 5; do
	kill -0 "$pid" 2>/dev/null || break
	sleep 1
done
kill -KILL "$pid" 2>/dev/null
[ $# -eq 0 ] || rm -rf -- "$@"
`

// watchdog is a small process that outlives this one.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File // closed by the kernel when we die
}

// watch guards the process pid, which must be our child; when we die it is ended
// and the doomed folders are removed.
func watch(pid int, doomed []string) (*watchdog, error) {
	end, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watch the private Postgres: %w", err)
	}
	defer end.Close()
	args := append([]string{"-c", watchdogScript, "fila-postgres-watchdog", strconv.Itoa(pid)}, doomed...)
	cmd := exec.Command("/bin/sh", args...) //nolint:noctx // It must outlive every context of this process, and the process.
	cmd.Stdin, cmd.Dir = end, "/"
	// A group of its own, so that Ctrl-C in a terminal does not end it before us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		pipe.Close()
		return nil, fmt.Errorf("watch the private Postgres: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// dismiss ends the watchdog without harm. It may have been killed before, which
// is no error by now.
func (w *watchdog) dismiss() {
	_, _ = w.pipe.WriteString("ended\n")
	_ = w.pipe.Close()
	_ = w.cmd.Wait()
}
