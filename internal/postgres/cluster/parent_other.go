//go:build unix && !linux

package cluster

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent leaves it to the watchdog.
func endWithParent(*syscall.SysProcAttr) {}

const canHandOver = false

func handlePath(handle int) string { return fmt.Sprintf("/dev/fd/%d", handle) }

// serves says whether the process is a server on the data, by its command line.
// One that cannot be seen is taken for one.
func serves(pid int, data string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err != nil && alive(pid) || strings.Contains(string(out), data)
}
