//go:build !linux

package soak_test

import "syscall"

func endWithTest() *syscall.SysProcAttr { return nil }
