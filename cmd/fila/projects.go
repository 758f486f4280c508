package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"fila/config"
	"fila/internal/agent"
	"fila/internal/call"
	"fila/internal/delivery"
	"fila/internal/postgres"
	"fila/internal/schedule"
	"fila/internal/turn"
	statement "fila/sql"
)

// projects are those that are served now, as each package knows them.
type projects struct {
	settings atomic.Pointer[config.Config]
	turns    atomic.Pointer[map[string]*turn.Project]
}

func newProjects() *projects {
	s := &projects{}
	s.settings.Store(&config.Config{})
	s.turns.Store(&map[string]*turn.Project{})
	return s
}

// use makes these the ones that are served.
func (s *projects) use(settings *config.Config, served []schedule.Project) {
	turns := make(map[string]*turn.Project, len(served))
	for _, p := range served {
		turns[p.Name] = p.Turn
	}
	s.turns.Store(&turns)
	s.settings.Store(settings)
}

// turn is how the project's turns are run, if it is served.
func (s *projects) turn(project string) (*turn.Project, bool) {
	p, ok := (*s.turns.Load())[project]
	return p, ok
}

// prepare makes the projects' clients without using them yet: a fault of one changes nothing.
func (s *projects) prepare(settings *config.Config, transport *call.Transport, log zerolog.Logger) ([]schedule.Project, error) {
	var served []schedule.Project
	for _, name := range slices.Sorted(maps.Keys(settings.Projects)) {
		p := settings.Projects[name]
		runs, err := turnProject(p, transport, log)
		if err != nil {
			return nil, fmt.Errorf("project %s: %w", name, err)
		}
		served = append(served, schedule.Project{
			Name:        name,
			Window:      schedule.Window{Debounce: p.Debounce, MaxWait: p.MaxWait, MaxMessages: p.MaxMessages},
			Concurrency: p.Concurrency,
			Turn:        runs,
		})
	}
	return served, nil
}

func turnProject(p *config.Project, transport *call.Transport, log zerolog.Logger) (*turn.Project, error) {
	asks, err := agent.New(agent.Options{
		Call: call.Options{
			URL: p.Agent.URL, Timeout: p.Agent.Timeout, Headers: p.Agent.Headers.Reveal(),
			SigningSecret: p.Agent.SigningSecret.Reveal(), Transport: transport, Version: thisBuild().Version,
		},
		ReconcileURL: p.Agent.ReconcileURL,
	})
	if err != nil {
		return nil, err
	}
	channel, err := delivery.New(delivery.Options{
		Type: p.Delivery.Type,
		Call: call.Options{
			URL: p.Delivery.URL, Timeout: p.Delivery.Timeout, Headers: p.Delivery.Headers.Reveal(),
			SigningSecret: p.Delivery.SigningSecret.Reveal(), Transport: transport, Version: thisBuild().Version,
		},
		ReconcileURL: p.Delivery.ReconcileURL,
		Logger:       log,
	})
	if err != nil {
		return nil, err
	}
	return &turn.Project{
		Name: p.Name, Agent: asks, AgentTimeout: p.Agent.Timeout, AgentUnknown: p.Agent.OnUnknown,
		Channel: channel, Sends: p.Delivery.Type != delivery.TypeNone, DeliveryUnknown: p.Delivery.OnUnknown,
		PartMaxChars: p.Delivery.PartMaxChars, PartDelay: p.Delivery.PartDelay,
		Backoff:  turn.Backoff{Attempts: p.Retry.Attempts, Min: p.Retry.Min, Max: p.Retry.Max},
		Fallback: p.Fallback.Text != "",
	}, nil
}

// openProjects writes the projects' numbers where the database's own rules read them, and makes the tables of new ones. Those
// that left the configuration keep theirs: what they have accepted is still to be answered.
func openProjects(ctx context.Context, pool *postgres.Pool, settings *config.Config) error {
	for _, name := range slices.Sorted(maps.Keys(settings.Projects)) {
		if err := openProject(ctx, pool, settings.Projects[name]); err != nil {
			return fmt.Errorf("open project %s: %w", name, err)
		}
	}
	return nil
}

// openProject tries again where somebody reads the queue at length: the table is attached under a short lock_timeout, so
// that the others' inserts never queue up behind ours.
func openProject(ctx context.Context, pool *postgres.Pool, p *config.Project) error {
	for attempt := 1; ; attempt++ {
		_, err := pool.Exec(ctx, statement.Named("project_open"),
			p.Name, p.Country, p.Debounce.Seconds(), p.MaxWait.Seconds(), p.MaxMessages, p.Join, p.DuringTurn, p.SupersedeLimit, p.OnDead,
			p.Takeover.OnHumanMessage, p.Takeover.Duration.Seconds(), p.Takeover.Messages, p.Fallback.Text, p.Fallback.Takeover,
			p.Retention.Receipts.Seconds(), p.Retention.Turns.Seconds(), p.Retention.Dead.Seconds())
		if err == nil || attempt == 10 || postgres.Classify(err) != postgres.Again {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// demoProjects are those whose agent is the built-in one.
func demoProjects(settings *config.Config) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(settings.Projects)) {
		if hasDemoAgent(settings.Projects[name]) {
			names = append(names, name)
		}
	}
	return names
}
