// Package entry is what every HTTP entrance does around its own work: who may come in, whether the body can be read, and how
// a refusal looks.
package entry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"fila/internal/postgres"
)

// Problem is a refusal as the caller sees it (RFC 9457). Its texts are ours alone: never a patient's text, name or phone.
type Problem struct {
	// Status is the HTTP status.
	Status int
	// Detail says what is wrong and what to do about it.
	Detail string
	// RetryAfter, where it is not 0, is when the caller may repeat the request.
	RetryAfter time.Duration
	// Members are further members of the document.
	Members map[string]any
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// Refuse makes a problem of this status.
func Refuse(status int, format string, arguments ...any) *Problem {
	return &Problem{Status: status, Detail: fmt.Sprintf(format, arguments...)}
}

// Unavailable is a refusal that a repetition may overcome; nothing was done.
func Unavailable(detail string) *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Detail: detail, RetryAfter: time.Second}
}

// Database turns an error of the database into what the caller may know of it. What is nobody's fault but ours stays an error.
func Database(err error) error {
	if err == nil {
		return nil
	}
	switch postgres.Classify(err) {
	case postgres.Refused:
		return Refuse(refusedStatus(err), "%s", postgres.Refusal(err))
	case postgres.Away, postgres.Again:
		return Unavailable("the database did not answer in time; repeat the request")
	case postgres.Invalid:
		return Refuse(http.StatusUnprocessableEntity, "the database refuses a value of this request (SQLSTATE %s)", postgres.Code(err))
	}
	return err
}

func refusedStatus(err error) int {
	switch postgres.Code(err) {
	case "FI404":
		return http.StatusNotFound
	case "FI409":
		return http.StatusConflict
	}
	return http.StatusUnprocessableEntity
}

// Write answers with the problem.
func Write(c echo.Context, p *Problem) error {
	header := c.Response().Header()
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	document := map[string]any{"status": p.Status, "title": title(p.Status), "detail": p.Detail}
	maps.Copy(document, p.Members)
	body, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode problem: %w", err)
	}
	return c.Blob(p.Status, "application/problem+json", body)
}

func title(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Error"
}

// Handler answers whatever error a route returned. It logs the ones that are ours, and no values.
func Handler(log zerolog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed {
			return
		}
		p := problemOf(err)
		if p.Status == http.StatusInternalServerError {
			log.Error().Str("route", c.Path()).Str("error", postgres.Safe(err)).Msg("request failed")
		}
		if err := Write(c, p); err != nil {
			log.Debug().Str("route", c.Path()).Msg("answer not written")
		}
	}
}

func problemOf(err error) *Problem {
	var p *Problem
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &routing):
		return Refuse(routing.Code, "%s", routingDetail(routing.Code))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Unavailable("the request was not finished in time; repeat it")
	}
	return Refuse(http.StatusInternalServerError, "an error of the service; its log says more")
}

// routingDetail replaces the words of the router, which may come to quote the path.
func routingDetail(status int) string {
	switch status {
	case http.StatusNotFound:
		return "no such place; see the list of routes"
	case http.StatusMethodNotAllowed:
		return "this place does not know the method; the Allow header lists those it does"
	}
	return title(status)
}
