// Package console is the page where people look on: a row a project.
package console

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"fila/internal/api/entry"
	"fila/internal/ledger"
)

const (
	// cookie holds the session of who gave the admin token.
	cookie = "fila_session"
	// sessionTime is how long one stays logged in: a shift.
	sessionTime = 12 * time.Hour
	// refresh is how often the page reads itself again, in seconds.
	refresh = 3
	// readTimeout bounds the look into the database.
	readTimeout = 3 * time.Second
)

//go:embed page.html style.css
var files embed.FS

// Options of the page.
type Options struct {
	Guard  *entry.Guard
	Ledger ledger.Ledger
}

// Console is the page.
type Console struct {
	options Options
	page    *template.Template
	style   template.CSS
	policy  string
}

// New makes the page.
func New(o Options) *Console {
	style, err := files.ReadFile("style.css")
	if err != nil {
		panic("console: no style.css")
	}
	digest := sha256.Sum256(style)
	return &Console{
		options: o,
		page:    template.Must(template.New("page.html").Funcs(template.FuncMap{"seconds": seconds}).ParseFS(files, "page.html")),
		style:   template.CSS(style), // our own file, not a visitor's text
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
			"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
}

// Mount adds its routes.
func (s *Console) Mount(e *echo.Echo) {
	e.Match([]string{http.MethodGet, http.MethodHead}, "/", s.show)
	e.POST("/login", s.login)
}

// view is what the page shows: the login, a failure, or the projects.
type view struct {
	Style    template.CSS
	Login    bool
	Wrong    bool
	Away     bool
	Refresh  int
	At       string
	Projects []ledger.Overview
}

func (s *Console) show(c echo.Context) error {
	if !s.options.Guard.Visitor(c, cookie) {
		c.Response().Header().Set("WWW-Authenticate", "Bearer")
		return s.render(c, http.StatusUnauthorized, view{Login: true})
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	projects, err := s.options.Ledger.Overview(ctx)
	if err != nil {
		return s.render(c, http.StatusServiceUnavailable, view{Away: true, Refresh: refresh})
	}
	return s.render(c, http.StatusOK, view{Projects: projects, Refresh: refresh, At: time.Now().UTC().Format("15:04:05")})
}

// login gives a session for the admin token. Strict: no other site's page can make the browser show it.
func (s *Console) login(c echo.Context) error {
	c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, 4<<10)
	session, ok := s.options.Guard.Session(strings.TrimSpace(c.FormValue("token")))
	if !ok {
		return s.render(c, http.StatusUnauthorized, view{Login: true, Wrong: true})
	}
	c.SetCookie(&http.Cookie{
		Name: cookie, Value: session, Path: "/", MaxAge: int(sessionTime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.Scheme() == "https",
	})
	return c.Redirect(http.StatusSeeOther, "/")
}

func (s *Console) render(c echo.Context, status int, v view) error {
	v.Style = s.style
	var page strings.Builder
	if err := s.page.Execute(&page, v); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	header := c.Response().Header()
	header.Set("Content-Security-Policy", s.policy)
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	return c.HTML(status, page.String())
}

// seconds is a duration as people read it; a dash where there is none.
func seconds(value *float64) string {
	switch {
	case value == nil:
		return "–"
	case *value < 10:
		return fmt.Sprintf("%.2f s", *value)
	}
	return time.Duration(*value * float64(time.Second)).Round(time.Second).String()
}
