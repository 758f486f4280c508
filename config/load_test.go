package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"fila/config"
)

// least is a valid project in few lines; tests put theirs behind it, from line 6 on.
const least = `projects:
  clinic:
    token: clinic-token
    agent: {url: "http://127.0.0.1:9/agent"}
    delivery: {url: "http://127.0.0.1:9/delivery"}
`

type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fila.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, text string, env environment) (*config.Config, error) {
	t.Helper()
	return config.Load(write(t, text), env.lookup)
}

func mustLoad(t testing.TB, text string, env environment) *config.Config {
	t.Helper()
	c, err := load(t, text, env)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return c
}

func printed(t testing.TB, c *config.Config) string {
	t.Helper()
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestEveryKeyHasItsDefault(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/every_key.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(text), "\n")
	almostEmpty := strings.ReplaceAll(least, "clinic:", "clinfeto:")
	almostEmpty = strings.ReplaceAll(almostEmpty, "    token: clinic-token\n", "")

	if got := printed(t, mustLoad(t, almostEmpty, nil)); got != want {
		t.Errorf("defaults:\n%s\nwant:\n%s", got, want)
	}
	if got := printed(t, mustLoad(t, string(text), nil)); got != want {
		t.Errorf("every key written out:\n%s\nwant:\n%s", got, want)
	}
}

func TestValuesArriveInTheirUnits(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `
sweep_seconds: 0.5
lease_seconds: 1e1
projects:
  clinic:
    message_debounce_seconds: 0.25
    max_messages: 7
    join: "\n"
    token: 012345
    country: ""
    webhook: {paths: {phone: data.from}}
    agent:
      url: http://127.0.0.1:9/agent
      headers: {Authorization: Bearer x}
    delivery: {type: twilio, account: {account_sid: AC1, auth_token: "2", from: +5531999990001}}
    takeover: {minutes: 0.05}
    filters: {allowed_teams: [12, sales], max_age_seconds: 90}
    retention: {receipts_days: 0.5}
`, nil)
	p := c.Projects["clinic"]
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"sweep", c.Sweep, 500 * time.Millisecond},
		{"lease", c.Lease, 10 * time.Second},
		{"name", p.Name, "clinic"},
		{"window", p.Debounce, 250 * time.Millisecond},
		{"ceiling of five windows", p.MaxWait, 1250 * time.Millisecond},
		{"count", p.MaxMessages, 7},
		{"joiner", p.Join, "\n"},
		{"number as token, digit by digit", p.Token.Reveal(), "012345"},
		{"country", p.Country, ""},
		{"paths", p.Webhook.Paths, map[string]string{"phone": "data.from"}},
		{"headers", p.Agent.Headers.Reveal(), map[string]string{"Authorization": "Bearer x"}},
		{"account", p.Delivery.Account, config.Account{"account_sid": "AC1", "auth_token": "2", "from": "+5531999990001"}},
		{"a provider's public address", p.Delivery.URL, "https://api.twilio.com"},
		{"takeover", p.Takeover.Duration, 3 * time.Second},
		{"teams", p.Filters.AllowedTeams, []string{"12", "sales"}},
		{"age", p.Filters.MaxAge, 90 * time.Second},
		{"receipts", p.Retention.Receipts, 12 * time.Hour},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestNotations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, join string }{
		{"JSON", `{"projects": {"clinic": {"join": "\ud83d\ude00\u00e9\/", "agent": {"url": "http://h"}, "delivery": {"type": "log"}}}}`, "😀é/"},
		{"JSON indented by tabs", "{\n\t\"projects\": {\n\t\t\"clinic\": {\"join\": \"|\", \"agent\": {\"url\": \"http://h\"}, \"delivery\": {\"type\": \"log\"}}}}", "|"},
		{"byte order mark", "\ufeff" + least, " "},
		{"line ends of Windows", strings.ReplaceAll(least+"    join: a\n", "\n", "\r\n"), "a"},
		{"a document mark", "---\n" + least, " "},
		{"empty values leave the default", "log_level:\n" + least + "    join: ~\n    retry:\n", " "},
		{"anchors", "projects:\n  other: &base\n    join: x\n    agent: {url: http://h}\n    delivery: {type: log}\n  clinic:\n    <<: *base\n    join: y\n", "y"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := mustLoad(t, tt.text, nil).Projects["clinic"].Join; got != tt.join {
				t.Errorf("join: got %q, want %q", got, tt.join)
			}
		})
	}
}

func TestEnvironmentIsFilledIn(t *testing.T) {
	t.Parallel()
	env := environment{"A": "a: b # \"c'\n", "N": "7", "B": "true", "E": "", "NESTED": "${A}"}
	for _, tt := range []struct {
		name, line string
		got        func(*config.Project) any
		want       any
	}{
		{"text that would break YAML", "join: ${A}", func(p *config.Project) any { return p.Join }, env["A"]},
		{"part of a text", `join: "<${N}-${N}>"`, func(p *config.Project) any { return p.Join }, "<7-7>"},
		{"once only", "join: ${NESTED}", func(p *config.Project) any { return p.Join }, "${A}"},
		{"set but empty", "join: ${E}", func(p *config.Project) any { return p.Join }, ""},
		{"literal", `join: "$${A} $5"`, func(p *config.Project) any { return p.Join }, "${A} $5"},
		{"number", "max_messages: ${N}", func(p *config.Project) any { return p.MaxMessages }, 7},
		{"quoted number", `max_wait_seconds: "${N}.5"`, func(p *config.Project) any { return p.MaxWait }, 7500 * time.Millisecond},
		{"boolean", "fallback: {takeover: \"${B}\"}", func(p *config.Project) any { return p.Fallback.Takeover }, true},
		{"comment", "join: x # ${UNSET}", func(p *config.Project) any { return p.Join }, "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustLoad(t, least+"    "+tt.line+"\n", env).Projects["clinic"]
			if got := tt.got(p); got != tt.want {
				t.Errorf("%s: got %#v, want %#v", tt.line, got, tt.want)
			}
		})
	}
}

func TestEnvironmentWins(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "listen: 127.0.0.1:1\nadmin_token: file\n"+least+"    message_debounce_seconds: 30\n", environment{
		"FILA_LISTEN":                     "0.0.0.0:2",
		"FILA_DATABASE_URL":               "postgres://u:p@h/d",
		"FILA_ADMIN_TOKEN":                "adm",
		"FILA_LOG_LEVEL":                  "debug",
		"CLINIC_MESSAGE_DEBOUNCE_SECONDS": "0.5",
	})
	p := c.Projects["clinic"]
	got := []any{c.Listen, c.DatabaseURL.Reveal(), c.AdminToken.Reveal(), c.LogLevel, p.Debounce, p.MaxWait}
	want := []any{"0.0.0.0:2", "postgres://u:p@h/d", "adm", "debug", 500 * time.Millisecond, 2500 * time.Millisecond}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	empty := mustLoad(t, "admin_token: file\n"+least, environment{"FILA_ADMIN_TOKEN": ""})
	if got := empty.AdminToken.Reveal(); got != "file" {
		t.Errorf("an empty variable: got %q, want the file's value", got)
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	_, err := config.Load("/no/such/file.yaml", environment{}.lookup)
	var invalid *config.Invalid
	if !errors.As(err, &invalid) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %#v, want an *Invalid about a missing file", err)
	}
	want := "/no/such/file.yaml: cannot be read: no such file or directory; name another file with --config or FILA_CONFIG"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestJSONSaysWhatPrintSays(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, least+"    message_debounce_seconds: 2.5\n", nil)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again := strings.ReplaceAll(string(encoded), c.Projects["clinic"].Token.String(), "clinic-token")
	if got, want := printed(t, mustLoad(t, again, nil)), printed(t, c); got != want {
		t.Errorf("read back:\n%s\nwant:\n%s", got, want)
	}
}
