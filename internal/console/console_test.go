package console

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"fila/internal/api/entry"
	"fila/internal/ledger"
	"fila/internal/pgtest"
	"fila/internal/postgres"
)

type browser struct {
	*testing.T
	pool   *postgres.Pool
	client *http.Client
	url    string
}

// open serves the page of a database with the project clinic to a browser that keeps cookies.
func open(t *testing.T, adminToken string) browser {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), `SELECT fila_open_project('clinic', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`); err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	New(Options{Guard: entry.NewGuard(adminToken, map[string]string{"clinic": "token"}), Ledger: ledger.New(pool)}).Mount(e)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return browser{t, pool, &http.Client{Jar: jar}, server.URL}
}

func (b browser) read(response *http.Response, err error) (int, http.Header, string) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return response.StatusCode, response.Header, string(page)
}

func (b browser) show(token string) (int, http.Header, string) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+"/", nil)
	if err != nil {
		b.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return b.read(b.client.Do(request))
}

func (b browser) login(token string) (int, http.Header, string) {
	b.Helper()
	return b.read(b.client.PostForm(b.url+"/login", url.Values{"token": {token}}))
}

func TestPage(t *testing.T) {
	t.Parallel()
	b := open(t, "")
	status, header, page := b.show("")
	if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/html") || !strings.Contains(page, `<th scope="row">clinic`) {
		t.Errorf("got %d %v %s", status, header, page)
	}
	if external := regexp.MustCompile(`(?i)(src|href)=|url\(|@import|<script`).FindString(page); external != "" {
		t.Errorf("the page asks for more than itself: %s", external)
	}
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(page)
	digest := sha256.Sum256([]byte(style[1]))
	policy := header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'") {
		t.Errorf("the policy does not allow the style, or too much: %s", policy)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	b := open(t, "admin")
	for _, token := range []string{"", "token", "wrong"} {
		status, header, page := b.show(token)
		if status != 401 || header.Get("WWW-Authenticate") != "Bearer" || !strings.Contains(page, "<form") || strings.Contains(page, "clinic") {
			t.Errorf("with %q: got %d %s", token, status, page)
		}
	}
	if status, _, page := b.show("admin"); status != 200 || !strings.Contains(page, "clinic") {
		t.Errorf("with the admin token: got %d", status)
	}
	for _, token := range []string{"", "token", strings.Repeat("a", 8<<10)} {
		if status, _, page := b.login(token); status != 401 || !strings.Contains(page, "not the admin token") {
			t.Errorf("login with %.10q: got %d", token, status)
		}
	}
	if status, _, page := b.login("admin"); status != 200 || !strings.Contains(page, "clinic") {
		t.Errorf("login: got %d %s", status, page)
	}
	if status, _, _ := b.show(""); status != 200 {
		t.Errorf("with the session: got %d", status)
	}
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	b := open(t, "admin")
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	status, header, _ := b.login("admin")
	cookie := header.Get("Set-Cookie")
	if status != 303 || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "admin") {
		t.Errorf("got %d %s", status, cookie)
	}
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := open(t, "")
	holder, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), `LOCK TABLE projects IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	if status, _, page := b.show(""); status != 503 || !strings.Contains(page, "The database does not answer") {
		t.Errorf("got %d %s", status, page)
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	at := func(f float64) *float64 { return &f }
	for want, value := range map[string]*float64{"–": nil, "0.01 s": at(0.012), "9.99 s": at(9.99), "12s": at(12.4), "1m30s": at(90), "26h0m0s": at(93600)} {
		if got := seconds(value); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}
