package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// cli is what every command works with.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// env looks up an environment variable, as os.LookupEnv does.
	env func(string) (string, bool)
	// config is the value of --config.
	config string
	// json: print one JSON document.
	json bool
}

const defaultConfig = "config/fila.yaml"

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           "fila",
		Short:         "Answer bursts of messages once, in order, and lose none",
		Version:       thisBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSubcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%v", err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&c.config, "config", "", "configuration `file` (default $FILA_CONFIG, else "+defaultConfig+")")
	root.AddCommand(
		newServe(c), newCheck(c), newMigrate(c),
		newStatus(c), newTurns(c), newDead(c), newConversation(c),
		newImport(c), newDoctor(c), newBench(c), newVersion(c),
	)
	return root
}

// configPath is the file that --config names, else FILA_CONFIG, else the usual one.
func (c *cli) configPath() string {
	return cmp.Or(c.config, c.variable("FILA_CONFIG"), defaultConfig)
}

// variable is an environment variable's value, "" when it is not set.
func (c *cli) variable(name string) string {
	value, _ := c.env(name)
	return value
}

// withJSON gives a reading command its --json.
func (c *cli) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON document")
	return cmd
}

// print writes the document as JSON where that was asked for, else as text says.
func (c *cli) print(document any, text func(io.Writer)) error {
	if !c.json {
		text(c.stdout)
		return nil
	}
	return c.printJSON(document)
}

func (c *cli) printJSON(document any) error {
	encoder := json.NewEncoder(c.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// group is a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef(cmd, "which one? %s needs a command", cmd.CommandPath())
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// noSubcommand is the argument check of a command that has subcommands: what follows it is none of them.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef(cmd, "unknown command %q; did you mean %q?", args[0], near[0])
	}
	return usagef(cmd, "unknown command %q", args[0])
}

// exactly checks the number of arguments against their names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef(cmd, "%s is missing", names[len(args)])
		case len(args) > len(names):
			return usagef(cmd, "unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// required reports the first of these flags that is absent or blank.
func required(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if strings.TrimSpace(cmd.Flag(name).Value.String()) == "" {
			return usagef(cmd, "--%s is missing", name)
		}
	}
	return nil
}
