package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// endWithParent has the kernel end the server when we die, in the moment between
// the server's start and the watchdog's too.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }

// canHandOver says that a process may use a folder through an open descriptor
// without a right to walk there.
const canHandOver = true

func handlePath(handle int) string { return fmt.Sprintf("/proc/self/fd/%d", handle) }

// serves says whether the process is a server on the data: Postgres makes it its
// working folder. A process that hides its own is taken for one; one that has
// none is dead, even if it still has its number because nobody asked how it
// ended, as happens in containers.
func serves(pid int, data string) bool {
	theirs, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	ours, err := os.Stat(data)
	return err == nil && os.SameFile(ours, theirs)
}
