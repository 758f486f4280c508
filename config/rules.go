package config

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

func sortedNames[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// check judges what concerns more than one key, and what is required.
func (r *reader) check(c *Config) {
	r.checkTokens(c)
	for _, name := range sortedNames(c.Projects) {
		p := c.Projects[name]
		at := key("projects", name)
		r.checkAgent(p, at+".agent")
		r.checkDelivery(p, at+".delivery")
		r.checkOrder(at+".retry", p.Retry.Min, p.Retry.Max)
		r.checkOrder(at+".adaptive", p.Adaptive.Min, p.Adaptive.Max)
	}
}

// broken reports a problem with a key, unless the key or what holds it is at fault already.
func (r *reader) broken(key, format string, args ...any) {
	for above := key; above != ""; above = parent(above) {
		if r.faulty[above] {
			return
		}
	}
	r.faulty[key] = true
	r.faults = append(r.faults, r.origin.fault(key, fmt.Sprintf(format, args...)))
}

// checkTokens keeps a service that others can reach from standing open, and one clinic's token from opening another.
func (r *reader) checkTokens(c *Config) {
	outside := !loopback(c.Listen) && !r.faulty["listen"]
	if outside && c.AdminToken == "" {
		r.broken("admin_token", "is required because listen (%s) is not loopback; set it or FILA_ADMIN_TOKEN", c.Listen)
	}
	owners := map[Secret]string{}
	if c.AdminToken != "" {
		owners[c.AdminToken] = "admin_token"
	}
	for _, name := range sortedNames(c.Projects) {
		at, token := key("projects", name, "token"), c.Projects[name].Token
		if token == "" {
			if outside {
				r.broken(at, "is required because listen (%s) is not loopback", c.Listen)
			}
			continue
		}
		if owner, taken := owners[token]; taken {
			r.broken(at, "is the same as %s; a token names one project, give each its own", owner)
			continue
		}
		owners[token] = at
	}
}

func (r *reader) checkAgent(p *Project, at string) {
	if p.Agent.URL == "" {
		r.broken(at+".url", "is required; write the address of the agent")
	}
	r.checkReconcile(at, p.Agent.OnUnknown, p.Agent.ReconcileURL)
	r.checkHeaders(at+".headers", p.Agent.Headers)
}

func (r *reader) checkDelivery(p *Project, at string) {
	r.checkReconcile(at, p.Delivery.OnUnknown, p.Delivery.ReconcileURL)
	r.checkHeaders(at+".headers", p.Delivery.Headers)
	if r.faulty[at+".type"] {
		return
	}
	kind := p.Delivery.Type
	_, isProvider := providers[kind]
	if p.Delivery.URL == "" && (kind == "http" || isProvider) {
		r.broken(at+".url", "is required for type %s; write the address it is reached at", kind)
	}
	r.checkAccount(p.Delivery, at+".account")
}

func (r *reader) checkReconcile(at, onUnknown, url string) {
	if onUnknown == "reconcile" && url == "" {
		r.broken(at+".on_unknown", "is reconcile, which needs reconcile_url; write it, or choose another")
	}
}

func (r *reader) checkAccount(d Delivery, at string) {
	provider := providers[d.Type]
	for _, name := range sortedNames(d.Account) {
		at := key(at, name)
		shape := provider.shapes[name]
		switch {
		case !slices.Contains(provider.keys(), name):
			r.broken(at, "unknown key for type %s; %s", d.Type, accountHint(provider))
		case shape != nil && d.Account[name] != "" && !shape.MatchString(d.Account[name].Reveal()):
			r.broken(at, "does not look like one; it must match %s", shape)
		}
	}
	for _, name := range provider.required {
		if d.Account[name] == "" {
			r.broken(key(at, name), "is required for type %s", d.Type)
		}
	}
}

func accountHint(p provider) string {
	if len(p.keys()) == 0 {
		return "it has no account, remove it"
	}
	return "it knows " + strings.Join(p.keys(), ", ")
}

// ownHeaders are set by the service or by HTTP itself; a second value would break the protocol. Package call refuses all of
// them but Content-Type: what is let through here must not keep the service from starting.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key",
	"Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Webhook-Id", "Webhook-Signature", "Webhook-Timestamp", "X-Fila-Attempt",
}

func (r *reader) checkHeaders(at string, headers Headers) {
	seen := map[string]bool{}
	for _, name := range sortedNames(headers) {
		at, canonical := key(at, name), http.CanonicalHeaderKey(name)
		switch {
		case !isHeaderName(name):
			r.broken(at, "is not the name of a header; use letters, digits and dashes")
		case slices.Contains(ownHeaders, canonical):
			r.broken(at, "is set by the service itself; remove it")
		case seen[canonical]:
			r.broken(at, "duplicate header; names differ in more than small and capital letters")
		case strings.ContainsFunc(headers[name].Reveal(), isControl):
			r.broken(at, "must not hold line breaks or control characters")
		}
		seen[canonical] = true
	}
}

func isHeaderName(name string) bool {
	const others = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !alphanumeric && !strings.ContainsRune(others, c)
	})
}

func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

func (r *reader) checkOrder(at string, least, most time.Duration) {
	if least > most && !r.faulty[at+".max_seconds"] {
		r.broken(at+".min_seconds", "is over max_seconds (%v over %v); lower it or raise max_seconds", least.Seconds(), most.Seconds())
	}
}

// longestRepetition is how long Meta repeats a webhook that was not acknowledged.
const longestRepetition = 7 * day

// warnings names what is allowed but slow or pointless.
func warnings(c *Config) []Fault {
	var found []Fault
	warn := func(key, format string, args ...any) {
		found = append(found, c.origin.fault(key, fmt.Sprintf(format, args...)))
	}
	if len(c.Projects) == 0 {
		warn("projects", "names no project; nothing is accepted")
	}
	for _, name := range sortedNames(c.Projects) {
		p := c.Projects[name]
		if p.Debounce > 15*time.Second {
			warn(key("projects", name, "message_debounce_seconds"), "is %v s; patients rarely wait over 15 s for an answer", p.Debounce.Seconds())
		}
		if p.MaxWait < p.Debounce {
			warn(key("projects", name, "max_wait_seconds"), "is under the window (%v s under %v s); every burst ends at the ceiling", p.MaxWait.Seconds(), p.Debounce.Seconds())
		}
		if p.Retention.Receipts < longestRepetition {
			warn(key("projects", name, "retention.receipts_days"), "is %v; a provider repeats a message for up to 7 days, and one whose receipt is gone is answered again", p.Retention.Receipts.Hours()/24)
		}
	}
	sortFaults(found)
	return found
}
