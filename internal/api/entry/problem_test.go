package entry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"
)

var nopLog = zerolog.Nop()

const canary = "canário 5531999990001"

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err        error
		status     int
		detail     string
		retryAfter string
	}{
		"of ours":             {Refuse(422, "phone is missing"), 422, "phone is missing", ""},
		"wrapped":             {fmt.Errorf("read: %w", Refuse(404, "no turn %d", 7)), 404, "no turn 7", ""},
		"for a while":         {Unavailable("later"), 503, "later", "1"},
		"half a second":       {&Problem{Status: 429, Detail: "slowly", RetryAfter: 1500 * time.Millisecond}, 429, "slowly", "2"},
		"of the router":       {echo.NewHTTPError(404, canary), 404, "no such place; see the list of routes", ""},
		"unknown to us":       {errors.New(canary), 500, "an error of the service; its log says more", ""},
		"cancelled":           {context.Canceled, 503, "the request was not finished in time; repeat it", "1"},
		"absent":              {Database(&pgconn.PgError{Code: "FI404", Message: "turn 7 is not known here"}), 404, "turn 7 is not known here", ""},
		"in the wrong state":  {Database(fmt.Errorf("x: %w", &pgconn.PgError{Code: "FI409", Message: "it is done"})), 409, "it is done", ""},
		"a bad argument":      {Database(&pgconn.PgError{Code: "FI422", Message: "by is required"}), 422, "by is required", ""},
		"refused in database": {Database(&pgconn.PgError{Code: "22021", Message: canary, Detail: canary}), 422, "the database refuses a value of this request (SQLSTATE 22021)", ""},
		"busy":                {Database(&pgconn.PgError{Code: "55P03", Message: canary}), 503, "the database did not answer in time; repeat the request", "1"},
		"away":                {Database(fmt.Errorf("x: %w", context.DeadlineExceeded)), 503, "the database did not answer in time; repeat the request", "1"},
		"broken":              {Database(&pgconn.PgError{Code: "42703", Message: canary, Detail: canary}), 500, "an error of the service; its log says more", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, header, body := answer(t, func(echo.Context) error { return tt.err }, func(*http.Request) {})
			var document struct {
				Status        int
				Title, Detail string
			}
			if err := json.Unmarshal([]byte(body), &document); err != nil {
				t.Fatal(err)
			}
			if status != tt.status || document.Status != tt.status || document.Detail != tt.detail || document.Title == "" {
				t.Errorf("want %d %q, got %d %s", tt.status, tt.detail, status, body)
			}
			if header.Get("Content-Type") != "application/problem+json" || header.Get("Retry-After") != tt.retryAfter {
				t.Errorf("headers: got %v", header)
			}
		})
	}
}

func TestNoError(t *testing.T) {
	t.Parallel()
	if err := Database(nil); err != nil {
		t.Errorf("want nil, got %v", err)
	}
}

func TestErrorsAreLoggedWithoutValues(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := echo.New()
	c := e.NewContext(nil, echo.NewResponse(discard{http.Header{}}, e))
	Handler(zerolog.New(&log))(&pgconn.PgError{Code: "42703", Message: canary, Detail: canary, TableName: "turns"}, c)
	if said := log.String(); !strings.Contains(said, "SQLSTATE 42703, table turns") || strings.Contains(said, "5531") {
		t.Errorf("log: got %s", said)
	}
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
