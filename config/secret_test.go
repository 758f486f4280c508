package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"fila/config"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const secret = config.Secret("açúcar-12345")
	const shown = "•••••• (12 characters)"
	holder := struct{ Headers config.Headers }{config.Headers{"a": secret}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, secret); got != shown {
			t.Errorf("%s: got %q, want %q", verb, got, shown)
		}
		if got := fmt.Sprintf(verb, holder); strings.Contains(got, "12345") {
			t.Errorf("%s of a struct shows the secret: %s", verb, got)
		}
	}
	if encoded, err := json.Marshal(secret); err != nil || string(encoded) != `"`+shown+`"` {
		t.Errorf("JSON: got %s, %v", encoded, err)
	}
	if encoded, err := yaml.Marshal(secret); err != nil || strings.Contains(string(encoded), "12345") {
		t.Errorf("YAML: got %s, %v", encoded, err)
	}
	if got := config.Secret("").String(); got != "" {
		t.Errorf("empty: got %q, want nothing", got)
	}
	if secret.Reveal() != "açúcar-12345" {
		t.Errorf("Reveal: got %q", secret.Reveal())
	}
}

func TestDatabaseURLHidesPasswords(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"": "",
		"postgres://fila@h:5432/d?sslmode=disable":           "postgres://fila@h:5432/d?sslmode=disable",
		"postgres://fila:pw@h:5432/d":                        "postgres://fila:••••••@h:5432/d",
		"postgres://fila:p@w/:x@h1:1,h2:2/d":                 "postgres://fila:••••••@h1:1,h2:2/d",
		"postgres:///d?user=fila&password=pw&sslmode=verify": "postgres:///d?user=fila&password=••••••&sslmode=verify",
		"postgres://h/d?sslpassword=pw":                      "postgres://h/d?sslpassword=••••••",
		`host=h password = 'p w\'x' dbname=d`:                "host=h password = •••••• dbname=d",
		`host=h password=p\ w&x dbname=d`:                    "host=h password=•••••• dbname=d",
	} {
		if got := fmt.Sprintf("%x", config.DatabaseURL(url)); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}

func TestNoOutputHoldsASecret(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `
database_url: postgres://fila:hush@h/d
admin_token: hush-1
projects:
  clinic:
    token: hush-2
    webhook: {secret: hush-3, previous_secret: hush-4}
    agent: {url: "http://user:hush@h/agent", headers: {Authorization: hush-5}, signing_secret: hush-6}
    delivery:
      type: zapi
      account: {instance: line-1, token: hush-7, client_token: hush-8}
      headers: {X-Key: hush-9}
      signing_secret: hush-0
`, nil)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Print": printed(t, c), "JSON": string(encoded), "%+v": fmt.Sprintf("%+v %+v", c, *c.Projects["clinic"]),
	} {
		if name != "%+v" && strings.Contains(text, "hush") {
			t.Errorf("%s shows a secret:\n%s", name, text)
		}
		if strings.Contains(text, "hush-") {
			t.Errorf("%s shows a secret:\n%s", name, text)
		}
	}
	if !strings.Contains(printed(t, c), "instance: line-1") {
		t.Errorf("Print hides the line, which is no secret:\n%s", printed(t, c))
	}
}
