//go:build !race

package soak_test

const raced = false
