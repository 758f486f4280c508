package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"fila/config"
	"fila/internal/postgres"
)

// usageError is a command that was not written right.
type usageError struct{ text string }

// Error says what is wrong and where the right form is written.
func (e *usageError) Error() string { return e.text }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...) + fmt.Sprintf(" (see %s --help)", cmd.CommandPath())}
}

// failures are those of a command that did several things one by one.
type failures []error

// Error joins what went wrong.
func (f failures) Error() string { return errors.Join(f...).Error() }

// exitCode tells a failure from a mistake in the command or in the configuration.
func exitCode(err error) int {
	var usage *usageError
	var invalid *config.Invalid
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.As(err, &invalid):
		return 2
	}
	return 1
}

// lines are what standard error says of an error: one line a fault.
func lines(err error) []string {
	var invalid *config.Invalid
	var several failures
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return strings.Split(invalid.Error(), "\n")
	case errors.As(err, &several):
		var all []string
		for _, one := range several {
			all = append(all, lines(one)...)
		}
		return all
	}
	return []string{"fila: " + strings.ReplaceAll(sentence(err), "\n", " ")}
}

// sentence is an error with what to do about it.
func sentence(err error) string {
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted; what was finished stays done"
	case postgres.Refusal(err) != "":
		return postgres.Refusal(err)
	case errors.As(err, &refused):
		return databaseSentence(refused.Code, err)
	case postgres.Classify(err) == postgres.Away:
		return postgres.Safe(err) + ": check that the database runs and that FILA_DATABASE_URL names it"
	}
	return err.Error()
}

func databaseSentence(code string, err error) string {
	switch {
	case code == "42P01" || code == "42883" || code == "42703" || code == "3F000":
		return "the database lacks the schema, or has an older one (" + postgres.Safe(err) + "): run fila migrate"
	case code == "42501":
		return "the database role may not do this (" + postgres.Safe(err) + "): use the role that owns the tables, or grant it the rights"
	case code == "25006":
		return "the database is read-only: name its primary in FILA_DATABASE_URL"
	case code == "3D000":
		return "the database that the URL names does not exist: create it, or correct FILA_DATABASE_URL"
	case postgres.Classify(err) == postgres.Again:
		return "someone else is deciding about the same rows (" + postgres.Safe(err) + "): try again"
	case strings.HasPrefix(code, "28"):
		return "the database refuses the login: correct user and password in FILA_DATABASE_URL"
	case postgres.Classify(err) == postgres.Away:
		return "the database cannot serve now (" + postgres.Safe(err) + "): try again, then look at its log"
	}
	return "the database refuses (" + postgres.Safe(err) + "): look at its log"
}
