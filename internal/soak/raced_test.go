//go:build race

package soak_test

// raced says that this program has the race detector, and so shall the instances.
const raced = true
