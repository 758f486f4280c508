package entry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	locked := NewGuard("admin", map[string]string{"a": "token-a", "b": "token-b", "open": ""})
	open := NewGuard("", map[string]string{"a": ""})
	noAdmin := NewGuard("", map[string]string{"a": "token-a", "open": ""})
	tests := []struct {
		name    string
		guard   *Guard
		project string
		header  string
		inside  int
		admin   int
		both    int
	}{
		{"no token", locked, "a", "", 401, 401, 401},
		{"an empty one", locked, "a", "Bearer ", 401, 401, 401},
		{"a wrong one", locked, "a", "Bearer wrong", 401, 401, 401},
		{"its own", locked, "a", "Bearer token-a", 200, 403, 403},
		{"in small letters", locked, "a", "bearer  token-a", 200, 403, 403},
		{"another scheme", locked, "a", "Basic token-a", 401, 401, 401},
		{"another project's", locked, "a", "Bearer token-b", 403, 403, 403},
		{"the admin's", locked, "a", "Bearer admin", 200, 200, 200},
		{"a project that is open", locked, "open", "", 200, 401, 401},
		{"no such project, no token", locked, "c", "", 401, 401, 401},
		{"no such project, another's token", locked, "c", "Bearer token-a", 403, 403, 403},
		{"no such project, the admin's token", locked, "c", "Bearer admin", 404, 200, 404},
		{"everything open", open, "a", "", 200, 200, 200},
		{"everything open, a token all the same", open, "a", "Bearer x", 200, 200, 200},
		{"everything open, no such project", open, "c", "", 404, 200, 404},
		{"no admin token, no token", noAdmin, "a", "", 401, 200, 401},
		{"no admin token, its own", noAdmin, "a", "Bearer token-a", 200, 200, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for what, check := range map[string]struct {
				with echo.MiddlewareFunc
				want int
			}{"Project": {tt.guard.Project, tt.inside}, "Admin": {tt.guard.Admin, tt.admin}, "AdminOfProject": {tt.guard.AdminOfProject, tt.both}} {
				status, header, body := answer(t, func(c echo.Context) error {
					c.SetParamNames("project")
					c.SetParamValues(tt.project)
					return check.with(func(c echo.Context) error { return c.NoContent(200) })(c)
				}, func(r *http.Request) { r.Header.Set("Authorization", tt.header) })
				if status != check.want || (status == 401) != (header.Get("WWW-Authenticate") == "Bearer") || strings.Contains(body, "token-") {
					t.Errorf("%s: want %d, got %d, %v, %s", what, check.want, status, header, body)
				}
			}
		})
	}
}

func TestGuardReplaced(t *testing.T) {
	t.Parallel()
	g := NewGuard("old", map[string]string{"a": "old-a"})
	session, ok := g.Session("old")
	if !ok || strings.Contains(session, "old") {
		t.Fatalf("session: got %q, %v", session, ok)
	}
	g.Replace("new", map[string]string{"b": "new-b"})
	for header, want := range map[string]int{"Bearer old": 401, "Bearer new": 404, "Bearer old-a": 401, "Bearer new-b": 403} {
		status, _, _ := answer(t, func(c echo.Context) error {
			c.SetParamNames("project")
			c.SetParamValues("a")
			return g.Project(func(c echo.Context) error { return c.NoContent(200) })(c)
		}, func(r *http.Request) { r.Header.Set("Authorization", header) })
		if status != want {
			t.Errorf("%s: want %d, got %d", header, want, status)
		}
	}
	if again, _ := g.Session("new"); again == session {
		t.Error("a session outlives its token")
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	g, open := NewGuard("admin", map[string]string{"a": "token-a"}), NewGuard("", nil)
	session, _ := g.Session("admin")
	for _, token := range []string{"", "token-a", "Admin"} {
		if _, ok := g.Session(token); ok {
			t.Errorf("%q gave a session", token)
		}
	}
	if _, ok := open.Session(""); ok {
		t.Error("no token gave a session where there is none")
	}
	tests := []struct {
		guard  *Guard
		header string
		cookie string
		want   string
	}{
		{g, "", "", "false"},
		{g, "", session, "true"},
		{g, "", session + "x", "false"},
		{g, "Bearer admin", "", "true"},
		{g, "Bearer token-a", "", "false"},
		{g, "Bearer " + session, "", "false"},
		{open, "", "", "true"},
	}
	for _, tt := range tests {
		_, _, got := answer(t, func(c echo.Context) error {
			if tt.guard.Visitor(c, "s") {
				return c.String(200, "true")
			}
			return c.String(200, "false")
		}, func(r *http.Request) {
			r.Header.Set("Authorization", tt.header)
			r.AddCookie(&http.Cookie{Name: "s", Value: tt.cookie})
		})
		if got != tt.want {
			t.Errorf("%q, cookie %q: want %s, got %s", tt.header, tt.cookie, tt.want, got)
		}
	}
}
