package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker; `go install` leaves them empty.
var version, commit string

// build says what this program is made of.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

func newVersion(c *cli) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return c.print(b, func(w io.Writer) { fmt.Fprintf(w, "fila %s (commit %s, %s)\n", b.Version, b.Commit, b.Go) })
		},
	})
}

// thisBuild takes what the linker was told, else what go itself wrote into the program.
func thisBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.Commit = cmp.Or(b.Commit, setting.Value)
			}
		}
	}
	b.Version, b.Commit = cmp.Or(b.Version, "(devel)"), cmp.Or(b.Commit, "unknown")
	return b
}
