package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// severity of a finding.
type severity string

const (
	fine    severity = "ok"
	hint    severity = "hint"
	warning severity = "warning"
	failing severity = "error"
)

// finding is one thing that was looked at, with what to do about it.
type finding struct {
	Severity severity `json:"severity"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
}

// checkup gathers findings.
type checkup []finding

func (f *checkup) add(s severity, subject, format string, args ...any) {
	*f = append(*f, finding{s, subject, fmt.Sprintf(format, args...)})
}

// count adds a finding about a number that should be 0.
func (f *checkup) count(n int64, s severity, subject, trouble, otherwise string) {
	if n == 0 {
		f.add(fine, subject, "%s", otherwise)
		return
	}
	f.add(s, subject, "%d %s", n, trouble)
}

func (f *checkup) errors() int {
	n := 0
	for _, one := range *f {
		if one.Severity == failing {
			n++
		}
	}
	return n
}

func newDoctor(c *cli) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "doctor", Short: "Check the installation and say what to do about each finding", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.doctor(cmd.Context()) },
	})
}

// doctor prints every finding, and fails when one is an error.
func (c *cli) doctor(ctx context.Context) error {
	var found checkup
	if settings := c.examineConfig(&found); settings != nil {
		examineAddresses(ctx, settings, &found)
	}
	url, err := c.databaseURL(ctx)
	if err != nil {
		found.add(failing, "database", "%s", joined(err))
	} else {
		examineDatabase(ctx, url, &found)
	}
	err = c.print(map[string]checkup{"findings": found}, func(w io.Writer) { found.write(w, c.palette()) })
	if err != nil {
		return err
	}
	if n := found.errors(); n > 0 {
		return errors.New(counted(n, "error", "errors") + " found: mend what is listed, then run fila doctor again")
	}
	return nil
}

func (f checkup) write(w io.Writer, p palette) {
	colors := map[severity]color{fine: green, warning: yellow, failing: red}
	for _, one := range f {
		fmt.Fprintf(w, "%s  %s: %s\n", p.paint(colors[one.Severity], fmt.Sprintf("%-7s", one.Severity)), one.Subject, one.Text)
	}
}
