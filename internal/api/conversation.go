package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"fila/internal/api/entry"
	"fila/internal/conversation"
	"fila/internal/ledger"
)

func (a *API) conversation(c echo.Context) error {
	project, phone, err := place(c)
	if err != nil {
		return err
	}
	ctx, cancel := reading(c)
	defer cancel()
	found, err := a.options.Ledger.Conversation(ctx, project, phone)
	if errors.Is(err, ledger.ErrNotFound) {
		return entry.Unavailable("the project is not set up in the database yet; repeat the request")
	}
	if err != nil {
		return entry.Database(err)
	}
	return c.JSON(http.StatusOK, found)
}

func (a *API) takeover(c echo.Context) error {
	return a.floor(c, http.StatusOK, func(s *conversation.Store, project, phone string, in instruction) (conversation.Done, error) {
		return s.Takeover(c.Request().Context(), project, phone, in.Minutes, in.By, in.Reason)
	})
}

func (a *API) release(c echo.Context) error {
	return a.floor(c, http.StatusOK, func(s *conversation.Store, project, phone string, in instruction) (conversation.Done, error) {
		return s.Release(c.Request().Context(), project, phone, in.By)
	})
}

func (a *API) suspend(c echo.Context) error {
	return a.floor(c, http.StatusOK, func(s *conversation.Store, project, phone string, in instruction) (conversation.Done, error) {
		return s.Suspend(c.Request().Context(), project, phone, in.By, in.Reason)
	})
}

func (a *API) resume(c echo.Context) error {
	return a.floor(c, http.StatusOK, func(s *conversation.Store, project, phone string, in instruction) (conversation.Done, error) {
		return s.Resume(c.Request().Context(), project, phone, in.Waiting, in.By)
	})
}

func (a *API) typing(c echo.Context) error {
	return a.floor(c, http.StatusNoContent, func(s *conversation.Store, project, phone string, _ instruction) (conversation.Done, error) {
		return s.Typing(c.Request().Context(), project, phone)
	})
}

func (a *API) flush(c echo.Context) error {
	return a.floor(c, http.StatusAccepted, func(s *conversation.Store, project, phone string, in instruction) (conversation.Done, error) {
		return s.Flush(c.Request().Context(), project, phone, in.By)
	})
}

// floor is what all actions on a conversation have in common.
func (a *API) floor(c echo.Context, status int, do func(*conversation.Store, string, string, instruction) (conversation.Done, error)) error {
	project, phone, err := place(c)
	if err != nil {
		return err
	}
	in, err := instructed(c)
	if err != nil {
		return err
	}
	done, err := do(a.options.Actions, project, phone, in)
	return a.carriedOut(c, status, done, err)
}

// erase answers how many rows of what went.
func (a *API) erase(c echo.Context) error {
	project, phone, err := place(c)
	if err != nil {
		return err
	}
	in, err := instructed(c)
	if err != nil {
		return err
	}
	if strings.TrimSpace(in.By) == "" {
		// Nobody but who has the admin token comes here.
		in.By = "admin"
	}
	counts, err := a.options.Actions.Erase(c.Request().Context(), project, phone, in.By)
	if err != nil {
		return entry.Database(err)
	}
	return c.JSON(http.StatusOK, counts)
}
