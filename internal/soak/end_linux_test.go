package soak_test

import "syscall"

// endWithTest has the kernel end an instance when the test dies.
func endWithTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
