package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"fila/internal/agent"
	"fila/internal/api/entry"
	"fila/internal/conversation"
	"fila/internal/ledger"
)

const (
	// maxTurns is how many turns one answer holds; who asks for more pages on.
	maxTurns = 100
	// readTimeout bounds a look into the ledger.
	readTimeout = 4 * time.Second
)

func reading(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request().Context(), readTimeout)
}

func (a *API) turns(c echo.Context) error {
	filter, err := filterOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := reading(c)
	defer cancel()
	page, err := a.options.Ledger.Page(ctx, filter)
	if err != nil {
		return entry.Database(err)
	}
	return c.JSON(http.StatusOK, page)
}

func filterOf(c echo.Context) (ledger.Filter, error) {
	query := func(name string) string { return entry.Text(c.QueryParam(name)) }
	f := ledger.Filter{Project: entry.Param(c, "project"), Phone: query("phone"), State: query("state"), Limit: ledger.DefaultLimit}
	if err := checkPhone(f.Phone); err != nil {
		return f, err
	}
	if f.State != "" && !slices.Contains(ledger.States, f.State) {
		return f, entry.Refuse(http.StatusUnprocessableEntity, "state is not known; give one of %s", strings.Join(ledger.States, ", "))
	}
	if given := query("limit"); given != "" {
		limit, err := strconv.Atoi(given)
		if err != nil || limit < 1 {
			return f, entry.Refuse(http.StatusUnprocessableEntity, "limit must be a number from 1 to %d", maxTurns)
		}
		f.Limit = min(limit, maxTurns)
	}
	if given := query("before"); given != "" {
		var ok bool
		if f.Before, ok = parseID(given); !ok {
			return f, entry.Refuse(http.StatusUnprocessableEntity, "before must be the id of a turn")
		}
	}
	return f, nil
}

func (a *API) turn(c echo.Context) error {
	id, err := turnID(c)
	if err != nil {
		return err
	}
	ctx, cancel := reading(c)
	defer cancel()
	found, err := a.options.Ledger.Turn(ctx, entry.Param(c, "project"), id)
	if errors.Is(err, ledger.ErrNotFound) {
		return noTurn(id)
	}
	if err != nil {
		return entry.Database(err)
	}
	return c.JSON(http.StatusOK, found)
}

func noTurn(id int64) error {
	return entry.Refuse(http.StatusNotFound, "turn %d is not known here", id)
}

// confirm answers whether the agent may go on to what can't be undone.
func (a *API) confirm(c echo.Context) error {
	id, err := turnID(c)
	if err != nil {
		return err
	}
	fence, err := attempt(c)
	if err != nil {
		return err
	}
	done, err := a.options.Actions.Confirm(c.Request().Context(), entry.Param(c, "project"), id, fence)
	if err != nil {
		return entry.Database(err)
	}
	if done.Status == "proceed" {
		return c.JSON(http.StatusOK, map[string]bool{"proceed": true})
	}
	p := entry.Refuse(http.StatusConflict, "the turn may not go on: %s", done.Status)
	p.Members = map[string]any{"proceed": false, "reason": done.Status}
	return p
}

// reply takes the answer that the agent had promised.
func (a *API) reply(c echo.Context) error {
	id, err := turnID(c)
	if err != nil {
		return err
	}
	fence, err := attempt(c)
	if err != nil {
		return err
	}
	answer, err := answered(c)
	if err != nil {
		return err
	}
	verdict, err := a.options.Replies.Reply(c.Request().Context(), entry.Param(c, "project"), id, fence, answer)
	switch {
	case err != nil:
		return entry.Database(err)
	case verdict == "absent":
		return noTurn(id)
	case verdict == "stale":
		return entry.Refuse(http.StatusConflict, "turn %d takes no reply any more; nothing of this one is sent", id)
	}
	return c.JSON(http.StatusOK, map[string]string{"status": verdict})
}

func answered(c echo.Context) (agent.Answer, error) {
	body, err := entry.Body(c, entry.MaxBody)
	if err != nil {
		return agent.Answer{}, err
	}
	answer, err := agent.ParseAnswer(http.StatusOK, body)
	switch {
	case err == nil:
		return answer, nil
	case !json.Valid(body):
		return answer, entry.Refuse(http.StatusBadRequest, "the body is not JSON")
	}
	return answer, entry.Refuse(http.StatusUnprocessableEntity,
		"the body is not an answer; give reply (a string) or replies (strings), and handoff (true or false) if a person shall go on")
}

func (a *API) redrive(c echo.Context) error {
	return a.settle(c, func(s *conversation.Store, project string, id int64, in instruction) (conversation.Done, error) {
		return s.Redrive(c.Request().Context(), project, id, in.By, in.Reason, in.Force)
	})
}

func (a *API) discard(c echo.Context) error {
	return a.settle(c, func(s *conversation.Store, project string, id int64, in instruction) (conversation.Done, error) {
		return s.Discard(c.Request().Context(), project, id, in.By, in.Reason)
	})
}

func (a *API) resolve(c echo.Context) error {
	return a.settle(c, func(s *conversation.Store, project string, id int64, in instruction) (conversation.Done, error) {
		return s.Resolve(c.Request().Context(), project, id, in.Outcome, in.By, in.Reason)
	})
}

// settle is what all actions of people on a turn have in common.
func (a *API) settle(c echo.Context, do func(*conversation.Store, string, int64, instruction) (conversation.Done, error)) error {
	id, err := turnID(c)
	if err != nil {
		return err
	}
	in, err := instructed(c)
	if err != nil {
		return err
	}
	done, err := do(a.options.Actions, entry.Param(c, "project"), id, in)
	return a.carriedOut(c, http.StatusOK, done, err)
}
