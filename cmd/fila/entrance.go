package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"fila/config"
	"fila/internal/agent"
	"fila/internal/api"
	"fila/internal/api/entry"
	"fila/internal/console"
	"fila/internal/conversation"
	"fila/internal/ledger"
	"fila/internal/metrics"
	"fila/internal/postgres"
	"fila/internal/turn"
	"fila/internal/webhook"
	statement "fila/sql"
)

// demoPath is where the built-in agent answers.
const demoPath = "/demo/agent"

// entrance is everything that listens: the API, its metrics, the page.
type entrance struct {
	server  *api.Server
	metrics *metrics.Metrics
	guard   *entry.Guard
}

func newEntrance(s *service) *entrance {
	return &entrance{
		metrics: metrics.New(metrics.Options{Pool: s.running, Pools: map[string]*postgres.Pool{"arrive": s.arriving, "run": s.running, "keep": s.keeping}}),
		guard:   entry.NewGuard("", nil),
	}
}

// build mounts the routes.
func (e *entrance) build(s *service) {
	e.admit(s.settings)
	messages := webhook.New(webhook.Options{Queue: s.queue, Projects: s.projects, Guard: e.guard, Acked: e.metrics.Acked})
	reads := ledger.New(s.running)
	actions := api.New(api.Options{
		Guard: e.guard, Ledger: reads, Actions: conversation.NewStore(s.running), Replies: callback{s}, Wake: s.scheduler.Wake,
	})

	page := console.New(console.Options{Guard: e.guard, Ledger: reads})
	mounts := []func(*echo.Echo){messages.Mount, actions.Mount, page.Mount}
	if s.settings.Demo {
		mounts = append(mounts, func(e *echo.Echo) { e.POST(demoPath, echo.WrapHandler(agent.Demo())) })
	}
	e.server = api.NewServer(api.ServerOptions{
		Log: s.log, Guard: e.guard, Started: s.started, Ready: s.isReady, Metrics: e.metrics.Handler(), Mount: mounts,
	})
}

// admit sets whose tokens open which routes.
func (e *entrance) admit(settings *config.Config) {
	tokens := make(map[string]string, len(settings.Projects))
	names := make([]string, 0, len(settings.Projects))
	for name, p := range settings.Projects {
		tokens[name] = p.Token.Reveal()
		names = append(names, name)
	}
	e.guard.Replace(settings.AdminToken.Reveal(), tokens)
	e.metrics.Projects(names)
}

func (e *entrance) serve(listener net.Listener) error { return e.server.Serve(listener) }

func (e *entrance) close(ctx context.Context) error { return e.server.Shutdown(ctx) }

var (
	errStarting   = errors.New("the service is not ready: it cannot reach its database, or the schema is not migrated")
	errStopping   = errors.New("the service is stopping")
	errReadOnly   = errors.New("the database cannot be written")
	errIncomplete = errors.New("the database lacks a project of the configuration; send SIGHUP, or start the service again")
)

// started is asked before every request and knows without asking the database.
func (s *service) started() error {
	if !s.opened.Load() {
		return errStarting
	}
	return nil
}

// isReady asks the database whether it takes writes.
func (s *service) isReady(ctx context.Context) error {
	if s.stopping.Load() {
		return errStopping
	}
	if err := s.started(); err != nil {
		return err
	}
	var writable, complete bool
	names := slices.AppendSeq([]string{}, maps.Keys(s.projects.settings.Load().Projects))
	err := s.running.QueryRow(ctx, statement.Named("writable"), names).Scan(&writable, &complete)
	switch {
	case err != nil:
		return errStarting
	case !writable:
		return errReadOnly
	case !complete:
		return errIncomplete
	}
	return nil
}

// callback takes the answers of agents that said 202.
type callback struct{ *service }

// Reply keeps the answer, and brings the turn up so that it is sent.
func (c callback) Reply(ctx context.Context, project string, id int64, attempt *int, answer agent.Answer) (string, error) {
	runs, ok := c.projects.turn(project)
	if !ok {
		return "absent", nil
	}
	verdict, err := c.store.Reply(ctx, project, id, attempt, runs.Kept(answer))
	switch {
	case err != nil:
		return "", err
	case verdict == turn.Held:
		c.scheduler.Retry(project, 0)
	default:
		c.answered(ctx, project, id, verdict)
	}
	return verdict, nil
}

// answered deals with a turn that the callback itself has ended.
func (c callback) answered(ctx context.Context, project string, id int64, verdict string) {
	switch verdict {
	case "done", "discarded", "superseded":
		c.entrance.metrics.TurnEnded(project, verdict)
		t, err := ledger.New(c.running).Turn(ctx, project, id)
		if err == nil {
			c.scheduler.Wake(project, t.Phone)
		}
	}
}

// Project tells the entrance how the project's messages are judged.
func (s *projects) Project(name string) (webhook.Project, bool) {
	p, ok := s.settings.Load().Projects[name]
	if !ok {
		return webhook.Project{}, false
	}
	return webhook.Project{
		Country: p.Country,
		Filters: webhook.Filters{
			Groups: p.Filters.Groups, AllowedTeams: p.Filters.AllowedTeams,
			IgnoredStatuses: p.Filters.IgnoredStatuses, MaxAge: p.Filters.MaxAge,
		},
	}, true
}

func hasDemoAgent(p *config.Project) bool {
	u, err := url.Parse(p.Agent.URL)
	return err == nil && u.Path == demoPath
}

// elsewhere tells whether the URL names another port than the address that is listened on.
func elsewhere(agentURL, address string) bool {
	u, err := url.Parse(agentURL)
	if err != nil {
		return false
	}
	_, port, err := net.SplitHostPort(address)
	return err == nil && u.Port() != port
}

// demoCurl is a first message for the project, to be pasted into a terminal.
func demoCurl(address string, p *config.Project) string {
	var curl strings.Builder
	curl.WriteString("curl http://" + address + "/v1/projects/" + p.Name + "/messages")
	if p.Token != "" {
		curl.WriteString(` -H "Authorization: Bearer $TOKEN"`)
	}
	curl.WriteString(` -H "Content-Type: application/json" -d '{"phone": "5531999990001", "text": "oi"}'`)
	return curl.String()
}
