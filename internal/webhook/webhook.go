// Package webhook lets messages in over HTTP: it decodes, validates and filters them, and answers once they are committed.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"fila/internal/api/entry"
	"fila/internal/queue"
)

// Queue commits the messages of one request, all or none; *queue.Queue is one.
type Queue interface {
	Push(ctx context.Context, messages []queue.Message) ([]queue.Receipt, error)
}

// Projects knows the projects as they are configured now.
type Projects interface {
	Project(name string) (Project, bool)
}

// Project is what arriving messages are judged by.
type Project struct {
	// Country is BR where both forms of the ninth digit are one conversation.
	Country string
	Filters Filters
}

// Options of the entrance.
type Options struct {
	Queue    Queue
	Projects Projects
	Guard    *entry.Guard
	// Acked is told how long an accepted request took; may be nil.
	Acked func(project string, took time.Duration)
}

// Webhook is the entrance for messages.
type Webhook struct{ options Options }

// New makes the entrance.
func New(o Options) *Webhook {
	if o.Acked == nil {
		o.Acked = func(string, time.Duration) {}
	}
	return &Webhook{options: o}
}

// Mount adds its routes.
func (w *Webhook) Mount(e *echo.Echo) {
	e.POST("/v1/projects/:project/messages", w.messages, w.options.Guard.Project)
}

// receipt is what the caller learns of one message; its id is echoed as it was given.
type receipt struct {
	ID     json.RawMessage `json:"id"`
	Status string          `json:"status"`
	Reason *string         `json:"reason"`
}

func (w *Webhook) messages(c echo.Context) error {
	start, name := time.Now(), entry.Param(c, "project")
	project, ok := w.options.Projects.Project(name)
	if !ok {
		return entry.Refuse(http.StatusNotFound, "no such project; the configuration file names the projects")
	}
	body, err := entry.Body(c, entry.MaxBody)
	if err != nil {
		return err
	}
	given, err := decode(body)
	if err != nil {
		return err
	}
	messages, err := accept(given, name, project, start)
	if err != nil {
		return err
	}
	receipts, err := w.options.Queue.Push(c.Request().Context(), messages)
	if err != nil {
		return pushProblem(err)
	}
	w.options.Acked(name, time.Since(start))
	return c.JSON(http.StatusAccepted, map[string][]receipt{"messages": answer(given.messages, receipts)})
}

func answer(given []incoming, receipts []queue.Receipt) []receipt {
	answers := make([]receipt, len(receipts))
	for i, r := range receipts {
		answers[i] = receipt{ID: given[i].ID, Status: r.Status}
		if r.Status == queue.Ignored {
			answers[i].Reason = &r.Reason
		}
	}
	return answers
}

func pushProblem(err error) error {
	var invalid *queue.InvalidError
	switch {
	case errors.Is(err, queue.ErrUnavailable):
		return entry.Unavailable(queue.ErrUnavailable.Error())
	case errors.As(err, &invalid) && invalid.Code == "FI404":
		// The file is ahead of the database, which was away when the project was added.
		return entry.Unavailable("the project is not set up in the database yet; send the message again")
	case errors.As(err, &invalid):
		return entry.Refuse(http.StatusUnprocessableEntity, "%s", invalid.Error())
	}
	return err
}
