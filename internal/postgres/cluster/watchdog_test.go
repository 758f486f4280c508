package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// sleeper is a child that ends by a signal only.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestWatchdog(t *testing.T) {
	t.Parallel()

	t.Run("ends what it watches and removes what is doomed when the pipe breaks", func(t *testing.T) {
		t.Parallel()
		guarded, doomed := sleeper(t), filepath.Join(t.TempDir(), "with a space")
		if err := os.MkdirAll(filepath.Join(doomed, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		dog, err := watch(guarded.Process.Pid, []string{doomed})
		if err != nil {
			t.Fatal(err)
		}
		dog.pipe.Close() // as the kernel does when we die
		_ = guarded.Wait()
		if status := guarded.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGQUIT {
			t.Errorf("ended by %v", status.Signal())
		}
		_ = dog.cmd.Wait()
		if _, err := os.Stat(doomed); !os.IsNotExist(err) {
			t.Errorf("the doomed folder is still there: %v", err)
		}
	})

	t.Run("leaves everything alone when dismissed", func(t *testing.T) {
		t.Parallel()
		guarded, doomed := sleeper(t), t.TempDir()
		dog, err := watch(guarded.Process.Pid, []string{doomed})
		if err != nil {
			t.Fatal(err)
		}
		dog.dismiss()
		if err := guarded.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the process is gone: %v", err)
		}
		if _, err := os.Stat(doomed); err != nil {
			t.Errorf("the folder is gone: %v", err)
		}
	})
}
