package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"fila/internal/api/entry"
)

// ServerOptions describe what is served.
type ServerOptions struct {
	Log   zerolog.Logger
	Guard *entry.Guard
	// Started is asked before each request of the API and must be quick: an error, which the caller is told, says why nothing
	// can be taken yet.
	Started func() error
	// Ready looks whether the database can be written and the schema is current; the caller is told its error.
	Ready func(context.Context) error
	// Metrics is served at /metrics.
	Metrics http.Handler
	// Mount adds the routes of the entrances.
	Mount []func(*echo.Echo)
}

// Server is the HTTP server of all entrances.
type Server struct {
	options ServerOptions
	http    *http.Server
}

// NewServer makes a server; it listens to nobody before Serve.
func NewServer(o ServerOptions) *Server {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = entry.Handler(o.Log)
	s := &Server{options: o}
	e.Use(s.logged, s.recovered, s.started)
	s.watch(e)
	for _, mount := range o.Mount {
		mount(e)
	}
	s.http = &http.Server{
		Handler:           e,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		// What it would write are the remarks of strangers' connections.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	return s
}

// Serve answers on the listener until Shutdown, and returns nil after it.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// Shutdown takes no connection any more, lets running requests finish until ctx ends, and then closes them.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("shut down HTTP: %w", err), s.http.Close())
	}
	return nil
}

// watch adds the routes for those who watch the process.
func (s *Server) watch(e *echo.Echo) {
	read := []string{http.MethodGet, http.MethodHead}
	e.Match(read, "/healthz", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "alive"})
	})
	e.Match(read, "/readyz", func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), 2*time.Second)
		defer cancel()
		if err := s.options.Ready(ctx); err != nil {
			return entry.Unavailable(err.Error())
		}
		return c.JSON(http.StatusOK, map[string]string{"status": "ready"})
	})
	if s.options.Metrics != nil {
		e.Match(read, "/metrics", echo.WrapHandler(s.options.Metrics), s.options.Guard.Admin)
	}
}

// started answers 503 at once as long as nothing can be taken, instead of letting everybody wait for the database.
func (s *Server) started(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.options.Started != nil && strings.HasPrefix(c.Request().URL.Path, "/v1/") {
			if err := s.options.Started(); err != nil {
				return entry.Unavailable(err.Error())
			}
		}
		return next(c)
	}
}

// logged writes the route and never the path, which holds phones.
func (s *Server) logged(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.options.Log.GetLevel() > zerolog.DebugLevel {
			return next(c)
		}
		start := time.Now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		s.options.Log.Debug().Str("method", method(c)).Str("route", c.Path()).Int("status", c.Response().Status).
			Dur("took", time.Since(start)).Msg("request")
		return nil
	}
}

// method keeps a word that a stranger made up out of the log.
func method(c echo.Context) string {
	switch m := c.Request().Method; m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// recovered answers 500 for a mistake of ours. The value of a panic may hold anything, so only the runtime's own are logged.
func (s *Server) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch cause := recover().(type) {
			case nil:
			case error:
				if errors.Is(cause, http.ErrAbortHandler) {
					panic(cause)
				}
				err = s.panicked(c, cause)
			default:
				err = s.panicked(c, nil)
			}
		}()
		return next(c)
	}
}

func (s *Server) panicked(c echo.Context, cause error) error {
	event := s.options.Log.Error().Str("route", c.Path()).Bytes("stack", debug.Stack())
	var ours runtime.Error
	if errors.As(cause, &ours) {
		event = event.Str("error", ours.Error())
	}
	event.Msg("panic in a request")
	return entry.Refuse(http.StatusInternalServerError, "an error of the service; its log says more")
}
