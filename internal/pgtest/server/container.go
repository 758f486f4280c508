package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

const (
	imageVariable = "FILA_TEST_POSTGRES_IMAGE"
	defaultImage  = "postgres:17-alpine"
)

// engine returns an error when no container engine answers, and why.
func engine(ctx context.Context) (err error) {
	// The library panics where it finds no engine at all.
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("no container engine: %v", reason)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	provider, err := testcontainers.ProviderDefault.GetProvider()
	if err != nil {
		return fmt.Errorf("no container engine: %w", err)
	}
	defer provider.Close()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("the container engine does not answer: %w", err)
	}
	return nil
}

// container starts Postgres in a container, with the settings of the local one.
func container(ctx context.Context) (server, error) {
	c, err := postgres.Run(ctx, cmp.Or(os.Getenv(imageVariable), defaultImage),
		postgres.WithDatabase("postgres"),
		testcontainers.WithCmd("postgres",
			"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
			"-c", "max_connections=300", "-c", "max_locks_per_transaction=256"),
		postgres.BasicWaitStrategies())
	if err != nil {
		return server{}, errors.Join(err, testcontainers.TerminateContainer(c))
	}
	url, err := c.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return server{}, errors.Join(fmt.Errorf("address of the container: %w", err), testcontainers.TerminateContainer(c))
	}
	return server{url: url, stop: func(ctx context.Context) error { return c.Terminate(ctx) }}, nil
}
