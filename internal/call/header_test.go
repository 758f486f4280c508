package call

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The vector is the one that Standard Webhooks publishes.
func TestSignatureOfThePublishedExample(t *testing.T) {
	t.Parallel()
	key, err := signingKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	sign(header, key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	want := map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	}
	for name, value := range want {
		if header.Get(name) != value {
			t.Errorf("%s: want %q, got %q", name, value, header.Get(name))
		}
	}
}

func TestSigningKey(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key string
		ok  bool
	}{"": {"", true}, "plain secret": {"plain secret", true}, "whsec_YQ==": {"a", true}, "whsec_YQ": {"a", true}, "whsec_": {"", false}, "whsec_$$": {"", false}}
	for secret, tt := range tests {
		key, err := signingKey(secret)
		if string(key) != tt.key || (err == nil) != tt.ok {
			t.Errorf("%q: got %q, %v", secret, key, err)
		}
		if err != nil && strings.Contains(err.Error(), "$$") {
			t.Errorf("%q: the error shows it: %v", secret, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"2", "", 2 * time.Second},
		{" 1.5 ", "", 1500 * time.Millisecond},
		{"-3", "", 0},
		{"soon", "", 0},
		{"NaN", "", 0},
		{"86400", "", time.Hour},
		{"1e300", "", time.Hour},
		{at(30 * time.Second), "", 30 * time.Second},
		{at(-time.Minute), "", 0},
		{at(48 * time.Hour), "", time.Hour},
		{at(time.Minute), at(50 * time.Second), 10 * time.Second},
	}
	for _, tt := range tests {
		header := http.Header{}
		header.Set("Retry-After", tt.value)
		header.Set("Date", tt.date)
		if got := retryAfter(header, now); got != tt.want {
			t.Errorf("%q, date %q: want %v, got %v", tt.value, tt.date, tt.want, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	const good = "https://agent.example/ask"
	tests := map[string]struct {
		o    Options
		want string
	}{
		"no url":     {Options{}, `scheme ""`},
		"no scheme":  {Options{URL: "agent.example/x"}, `scheme ""`},
		"ftp":        {Options{URL: "ftp://hidden@x"}, `scheme "ftp"`},
		"no host":    {Options{URL: "http:///x"}, "no host"},
		"nonsense":   {Options{URL: "http://hidden:%zz@x"}, "cannot be parsed"},
		"no timeout": {Options{URL: good}, "above 0"},
		"own key":    {Options{URL: good, Timeout: 1, Headers: map[string]string{"idempotency-key": "hidden"}}, "remove it"},
		"own host":   {Options{URL: good, Timeout: 1, Headers: map[string]string{"Host": "hidden"}}, "remove it"},
		"bad name":   {Options{URL: good, Timeout: 1, Headers: map[string]string{"a b": "hidden"}}, "not a header name"},
		"bad value":  {Options{URL: good, Timeout: 1, Headers: map[string]string{"A": "hidden\r\nB: c"}}, "control character"},
		"bad secret": {Options{URL: good, Timeout: 1, SigningSecret: "whsec_hidden!"}, "not base64"},
	}
	for name, tt := range tests {
		_, err := New(tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: want an error about %q that shows nothing, got %v", name, tt.want, err)
		}
	}
	c, err := New(Options{URL: good, Timeout: time.Minute})
	if err != nil || c.timeout != time.Minute {
		t.Errorf("good options: got %v", err)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	refusal := Response{Status: 429, RetryAfter: time.Second}.Failure(NotDone, "agent")
	if refusal.Error() != "agent answered 429" || refusal.RetryAfter != time.Second || refusal.Unwrap() != nil {
		t.Errorf("failure of an answer: got %+v", refusal)
	}
	tests := []struct {
		err   error
		want  Outcome
		label string
	}{
		{nil, Done, "done"}, {errors.New("x"), Unknown, "unknown"}, {fmt.Errorf("ask: %w", refusal), NotDone, "not_done"}, {&Failure{Outcome: Permanent}, Permanent, "permanent"},
	}
	for _, tt := range tests {
		if got := OutcomeOf(tt.err); got != tt.want || got.String() != tt.label {
			t.Errorf("%v: want %s, got %s", tt.err, tt.label, got)
		}
	}
}

// A question is asked as its receiver is called, within half a minute.
func TestNewQuestion(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: 30 * time.Second} {
		c, err := NewQuestion(Options{URL: "http://receiver/call", Timeout: timeout, SigningSecret: "s"}, "http://receiver/question")
		if err != nil {
			t.Fatal(err)
		}
		if c.timeout != want || c.url.Path != "/question" || string(c.key) != "s" {
			t.Errorf("timeout %s: asks %s within %s", timeout, c.url.Path, c.timeout)
		}
	}
	if c, err := NewQuestion(Options{URL: "http://receiver/call", Timeout: time.Second}, ""); c != nil || err != nil {
		t.Errorf("without a URL: %v, %v", c, err)
	}
}
