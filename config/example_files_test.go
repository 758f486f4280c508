package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"fila/config"
)

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// exampleEnvironment is fila.example.env filled in.
func exampleEnvironment(t *testing.T) environment {
	t.Helper()
	env := environment{}
	for line := range strings.Lines(read(t, "fila.example.env")) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if value == "" {
			value = "secret-of-" + name
		}
		env[name] = value
	}
	return env
}

func TestExampleFileNeedsNothing(t *testing.T) {
	t.Parallel()
	c, err := config.Load("fila.yaml", environment{}.lookup)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Demo || c.DatabaseURL != "" || len(c.Warnings) > 0 || len(c.NotYet()) > 0 {
		t.Errorf("demo %v, database %q, warnings %v, not yet %v", c.Demo, c.DatabaseURL, c.Warnings, c.NotYet())
	}
	for name, window := range map[string]time.Duration{"medcenter": 2 * time.Second, "clinfeto": 10 * time.Second} {
		p := c.Projects[name]
		if p.Debounce != window || p.Agent.URL != "http://"+c.Listen+"/demo/agent" || p.Delivery.Type != "log" {
			t.Errorf("%s: window %v, agent %s, delivery %s", name, p.Debounce, p.Agent.URL, p.Delivery.Type)
		}
	}
}

func TestOptionalLinesOfTheExampleAreValid(t *testing.T) {
	t.Parallel()
	env := exampleEnvironment(t)
	env["DATABASE_URL"], env["ADMIN_TOKEN"] = "postgres://h/d", "admin"
	text := read(t, "fila.yaml")
	whole := regexp.MustCompile(`(?m)^( *)# ([a-z_]+: )`).ReplaceAllString(text, "$1$2")
	if strings.Count(whole, "#") >= strings.Count(text, "#") {
		t.Fatal("no optional line was found")
	}
	c := mustLoad(t, whole, env)
	if len(c.NotYet()) > 0 {
		t.Errorf("the example shows what this version lacks: %v", c.NotYet())
	}
	if got := c.Projects["clinfeto"].Agent.Headers.Reveal()["Authorization"]; got != "Bearer secret-of-CLINFETO_AGENT_TOKEN" {
		t.Errorf("header: got %q", got)
	}
}
