// Package api is the ledger and the actions of people and agents over HTTP, and the server that all entrances share.
package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"fila/internal/agent"
	"fila/internal/api/entry"
	"fila/internal/conversation"
	"fila/internal/ledger"
)

// Replies takes the answer of an agent that had said it would call back. attempt is nil where the agent named none. The verdict
// is send, done, held, discarded, superseded, repeated, stale or absent.
type Replies interface {
	Reply(ctx context.Context, project string, turn int64, attempt *int, answer agent.Answer) (verdict string, err error)
}

// Options of the API.
type Options struct {
	Guard   *entry.Guard
	Ledger  ledger.Ledger
	Actions *conversation.Store
	Replies Replies
	// Wake is told of a conversation that may have work now, by its key; it must not block. May be nil.
	Wake func(project, phone string)
}

// API is the ledger and its actions.
type API struct{ options Options }

// New makes the API.
func New(o Options) *API {
	if o.Wake == nil {
		o.Wake = func(string, string) {}
	}
	return &API{options: o}
}

// Mount adds its routes.
func (a *API) Mount(e *echo.Echo) {
	project, admin := a.options.Guard.Project, a.options.Guard.AdminOfProject
	const root = "/v1/projects/:project"
	read := func(path string, h echo.HandlerFunc) {
		e.Match([]string{http.MethodGet, http.MethodHead}, root+path, h, project)
	}
	act := func(path string, h echo.HandlerFunc) { e.POST(root+path, h, project) }

	read("/conversations/:phone", a.conversation)
	e.DELETE(root+"/conversations/:phone", a.erase, admin)
	act("/conversations/:phone/takeover", a.takeover)
	act("/conversations/:phone/release", a.release)
	act("/conversations/:phone/suspend", a.suspend)
	act("/conversations/:phone/resume", a.resume)
	act("/conversations/:phone/typing", a.typing)
	act("/conversations/:phone/flush", a.flush)

	read("/turns", a.turns)
	read("/turns/:id", a.turn)
	act("/turns/:id/confirm", a.confirm)
	act("/turns/:id/reply", a.reply)
	act("/turns/:id/redrive", a.redrive)
	act("/turns/:id/discard", a.discard)
	act("/turns/:id/resolve", a.resolve)
}

// carriedOut answers an action, and wakes the conversation that it was about.
func (a *API) carriedOut(c echo.Context, status int, done conversation.Done, err error) error {
	if err != nil {
		return entry.Database(err)
	}
	if done.Phone != "" {
		a.options.Wake(entry.Param(c, "project"), done.Phone)
	}
	if status == http.StatusNoContent {
		return c.NoContent(status)
	}
	return c.JSON(status, map[string]string{"status": done.Status})
}
