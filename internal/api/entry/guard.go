package entry

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// Guard knows who may come in. It is safe for concurrent use, also while its keys are replaced.
type Guard struct{ keys atomic.Pointer[keys] }

// keys are digests, so that comparing takes the same time whatever is compared and no dump shows a token.
type keys struct {
	admin    *digest
	projects map[string]*digest
	closed   bool
}

type digest [sha256.Size]byte

// NewGuard makes a guard with these keys; see Replace.
func NewGuard(adminToken string, projectTokens map[string]string) *Guard {
	g := &Guard{}
	g.Replace(adminToken, projectTokens)
	return g
}

// Replace sets the keys whole. projectTokens has an entry for every project there is; an empty token leaves a door open.
func (g *Guard) Replace(adminToken string, projectTokens map[string]string) {
	k := &keys{admin: digestOf(adminToken), projects: make(map[string]*digest, len(projectTokens))}
	k.closed = k.admin != nil
	for name, token := range projectTokens {
		k.projects[name] = digestOf(token)
		k.closed = k.closed || token != ""
	}
	g.keys.Store(k)
}

func digestOf(token string) *digest {
	if token == "" {
		return nil
	}
	d := digest(sha256.Sum256([]byte(token)))
	return &d
}

func (d *digest) is(other *digest) bool {
	return d != nil && other != nil && subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

// knows tells whether the token opens anything at all.
func (k *keys) knows(token *digest) bool {
	known := k.admin.is(token)
	for _, d := range k.projects {
		known = d.is(token) || known
	}
	return known
}

// Project lets in who may act for the project named in the path.
func (g *Guard) Project(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := g.keys.Load().project(Param(c, "project"), bearer(c)); err != nil {
			return err
		}
		return next(c)
	}
}

func (k *keys) project(name string, token *digest) error {
	own, exists := k.projects[name]
	switch {
	case k.admin.is(token), exists && (own == nil || own.is(token)), !exists && !k.closed:
		if !exists {
			return Refuse(http.StatusNotFound, "no such project; the configuration file names the projects")
		}
		return nil
	case k.knows(token):
		// The same for a project that does not exist: another clinic's token learns nothing from it.
		return Refuse(http.StatusForbidden, "this token opens another project")
	}
	return unauthorized("the project's token")
}

// Admin lets in who has the admin token, or anybody where none is set.
func (g *Guard) Admin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if k := g.keys.Load(); k.admin != nil && !k.admin.is(bearer(c)) {
			if k.knows(bearer(c)) {
				return Refuse(http.StatusForbidden, "only the admin token opens this")
			}
			return unauthorized("the admin token")
		}
		return next(c)
	}
}

// AdminOfProject lets in who has the admin token; where none is set, who may act for the project.
func (g *Guard) AdminOfProject(next echo.HandlerFunc) echo.HandlerFunc {
	return g.Admin(g.Project(next))
}

func unauthorized(what string) *Problem {
	return Refuse(http.StatusUnauthorized, "no valid token; send Authorization: Bearer with %s", what)
}

// bearer is the digest of the token that came with the request, nil for none.
func bearer(c echo.Context) *digest {
	scheme, token, _ := strings.Cut(c.Request().Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return nil
	}
	return digestOf(strings.TrimSpace(token))
}

// Visitor tells whether a browser may see what the admin token opens: with the token itself or the session made from it.
func (g *Guard) Visitor(c echo.Context, cookie string) bool {
	k := g.keys.Load()
	if k.admin == nil || k.admin.is(bearer(c)) {
		return true
	}
	shown, err := c.Cookie(cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(shown.Value), []byte(k.session())) == 1
}

// Session is the value of a cookie for who gave the admin token, and false for anybody else. It is no token itself: it opens
// no route of the API, and it ends when the admin token is changed.
func (g *Guard) Session(adminToken string) (string, bool) {
	k := g.keys.Load()
	if !k.admin.is(digestOf(adminToken)) {
		return "", false
	}
	return k.session(), true
}

func (k *keys) session() string {
	mac := hmac.New(sha256.New, k.admin[:])
	_, _ = mac.Write([]byte("session of the operations page"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
