package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCheck(c *cli) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "check", Short: "Validate the configuration and print its effective values, secrets hidden", Args: exactly(),
		RunE: func(*cobra.Command, []string) error { return c.check() },
	})
}

func (c *cli) check() error {
	settings, err := c.usable()
	if err != nil {
		return err
	}
	for _, warning := range settings.Warnings {
		fmt.Fprintln(c.stderr, "warning: "+warning.In(c.configPath()))
	}
	if c.json {
		return c.printJSON(settings)
	}
	return settings.Print(c.stdout)
}
