package config_test

import (
	"slices"
	"testing"

	"fila/config"
)

func said(found []config.Fault) []string {
	lines := make([]string, len(found))
	for i, fault := range found {
		lines[i] = fault.In("f")
	}
	return lines
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		env        environment
		want       []string
	}{
		{"none", least + "    message_debounce_seconds: 15\n", nil, []string{}},
		{"long window", least + "    message_debounce_seconds: 16\n", nil, []string{
			"f:6: projects.clinic.message_debounce_seconds: is 16 s; patients rarely wait over 15 s for an answer",
		}},
		{"long window of the environment", least, environment{"CLINIC_MESSAGE_DEBOUNCE_SECONDS": "20"}, []string{
			"CLINIC_MESSAGE_DEBOUNCE_SECONDS: is 20 s; patients rarely wait over 15 s for an answer",
		}},
		{"low ceiling", least + "    max_wait_seconds: 2\n    message_debounce_seconds: 2.5\n", nil, []string{
			"f:6: projects.clinic.max_wait_seconds: is under the window (2 s under 2.5 s); every burst ends at the ceiling",
		}},
		{"receipts of 7 days", least + "    retention: {receipts_days: 7}\n", nil, []string{}},
		{"receipts that go before repetitions end", least + "    retention: {receipts_days: 6.5}\n", nil, []string{
			"f:6: projects.clinic.retention.receipts_days: is 6.5; a provider repeats a message for up to 7 days, and one whose receipt is gone is answered again",
		}},
		{"no project", "demo: true\nprojects: {}\n", nil, []string{"f:2: projects: names no project; nothing is accepted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := said(mustLoad(t, tt.text, tt.env).Warnings); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNotYet(t *testing.T) {
	t.Parallel()
	if got := mustLoad(t, least, nil).NotYet(); len(got) > 0 {
		t.Errorf("defaults: got %v, want nothing", got)
	}
	c := mustLoad(t, `public_url: https://fila.example
projects:
  clinic:
    webhook:
      secret: s
      previous_secret: p
      paths: {phone: from}
    media_text: {url: http://h}
    adaptive: {min_seconds: 1, max_seconds: 2}
    agent: {url: http://h}
    delivery:
      typing: true
      type: waha
      url: http://h
`, nil)
	const remove = ": is not available in this version; remove it"
	want := []string{
		"f:1: public_url" + remove,
		"f:5: projects.clinic.webhook.secret" + remove,
		"f:6: projects.clinic.webhook.previous_secret" + remove,
		"f:7: projects.clinic.webhook.paths" + remove,
		"f:8: projects.clinic.media_text.url" + remove,
		"f:9: projects.clinic.adaptive.min_seconds" + remove,
		"f:9: projects.clinic.adaptive.max_seconds" + remove,
		"f:12: projects.clinic.delivery.typing" + remove,
		"f:13: projects.clinic.delivery.type: waha is not available in this version; use http, log or none",
	}
	if got := said(c.NotYet()); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
