package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"fila/config"
)

func newServe(c *cli) *cobra.Command {
	var noMigrate bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the projects of the configuration until SIGINT or SIGTERM; SIGHUP reads the file again",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := c.usable()
			if err != nil {
				return err
			}
			log := newLogger(c.stderr, settings.LogLevel, c.variable("NO_COLOR") != "")
			warn(log, settings)
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			return serve(cmd.Context(), &service{
				settings: settings, load: c.usable, hangup: hangup, migrate: !noMigrate, log: log,
			})
		},
	}
	cmd.Flags().BoolVar(&noMigrate, "no-migrate", false, "leave the schema alone; not ready until somebody has migrated it")
	return cmd
}

// usable reads the configuration and refuses what this version cannot do.
func (c *cli) usable() (*config.Config, error) {
	settings, err := config.Load(c.configPath(), c.env)
	if err != nil {
		return nil, err
	}
	if faults := settings.NotYet(); len(faults) > 0 {
		return nil, &config.Invalid{Path: c.configPath(), Faults: faults}
	}
	return settings, nil
}

func warn(log zerolog.Logger, settings *config.Config) {
	for _, w := range settings.Warnings {
		log.Warn().Str("key", w.Key).Int("line", w.Line).Msg("configuration: " + w.Problem)
	}
}

// newLogger writes lines for people on a terminal, and JSON everywhere else.
func newLogger(out io.Writer, level string, plain bool) zerolog.Logger {
	if isTerminal(out) {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: "15:04:05.000", NoColor: plain}
	}
	parsed, err := zerolog.ParseLevel(level)
	if err != nil {
		parsed = zerolog.InfoLevel
	}
	return zerolog.New(out).Level(parsed).With().Timestamp().Logger()
}

// spareHeap is asked for and never touched, so that it takes no memory: the collector counts it, and lets the small heap of a service grow
// by as much before it runs again. Without it a busy service spends a sixth of its time collecting.
const spareHeap = 16 << 20

// serve runs the service until ctx ends and everything is brought to rest.
func serve(ctx context.Context, s *service) error {
	spare := make([]byte, spareHeap)
	defer runtime.KeepAlive(spare)
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
