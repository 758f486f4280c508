package entry

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

func TestRepair(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ given, want string }{
		"nothing to do":                {`{"a":"olá \n \\ \" \u00e9 🦷"}`, `{"a":"olá \n \\ \" \u00e9 🦷"}`},
		"NUL in a value":               {`{"a":"x\u0000y"}`, `{"a":"xy"}`},
		"NUL in a key":                 {`{"a\u0000b":1}`, `{"ab":1}`},
		"no NUL, but a backslash":      {`{"a":"\\u0000"}`, `{"a":"\\u0000"}`},
		"a backslash and then NUL":     {`{"a":"\\\u0000"}`, `{"a":"\\"}`},
		"a whole pair":                 {`{"a":"\ud83e\uddb7"}`, `{"a":"\ud83e\uddb7"}`},
		"a whole pair in capitals":     {`{"a":"\uD83E\uDDB7"}`, `{"a":"\uD83E\uDDB7"}`},
		"the first half alone":         {`{"a":"meio \ud83d emoji"}`, "{\"a\":\"meio \uFFFD emoji\"}"},
		"the second half alone":        {`{"a":"\uDC00"}`, "{\"a\":\"\uFFFD\"}"},
		"the halves in wrong order":    {`{"a":"\udc00\ud800"}`, "{\"a\":\"\uFFFD\uFFFD\"}"},
		"two first halves and one":     {`{"a":"\ud83e\ud83e\uddb7"}`, "{\"a\":\"\uFFFD\\ud83e\\uddb7\"}"},
		"NUL between two halves":       {`{"a":"\ud83e\u0000\uddb7"}`, "{\"a\":\"\uFFFD\uFFFD\"}"},
		"an escape that is none":       {`{"a":"\ud8zz"}`, `{"a":"\ud8zz"}`},
		"cut off":                      {`{"a":"\ud8`, `{"a":"\ud8`},
		"cut off behind a backslash":   {`"\u0000\`, `"\`},
		"bytes that are not UTF-8":     {"{\"a\":\"oi \xc3\x28 \xff\"}", "{\"a\":\"oi \uFFFD( \uFFFD\"}"},
		"a byte order mark":            {"\uFEFF{}", "{}"},
		"a surrogate encoded in UTF-8": {"\"\xed\xa0\x80\"", "\"\uFFFD\""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(Repair([]byte(tt.given))); got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

func FuzzRepair(f *testing.F) {
	for _, text := range []string{`{"a\u0000":"\ud83d"}`, `"\\\u0000\\`, "\"\xff\\ud83e\\uddb7\"", `[1,"\uD800\uDC00"]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, given []byte) {
		valid := json.Valid(given)
		got := Repair(bytes.Clone(given))
		if !utf8.Valid(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		if valid && !json.Valid(got) {
			t.Fatalf("no JSON any more: %q", got)
		}
		if again := Repair(bytes.Clone(got)); valid && !bytes.Equal(again, got) {
			t.Fatalf("repaired twice: %q, %q", got, again)
		}
		var value any
		if json.Unmarshal(got, &value) == nil && holdsNUL(value) {
			t.Fatalf("NUL is left in %q", got)
		}
	})
}

func holdsNUL(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, "\x00")
	case []any:
		for _, x := range v {
			if holdsNUL(x) {
				return true
			}
		}
	case map[string]any:
		for k, x := range v {
			if strings.Contains(k, "\x00") || holdsNUL(x) {
				return true
			}
		}
	}
	return false
}

func TestDepth(t *testing.T) {
	t.Parallel()
	tests := map[string]int{
		``: 0, `5`: 0, `{}`: 1, `[{"a":[1]},[]]`: 3, `{"[[[":"\"[[["}`: 1, `"[`: 0, `]]][`: 0, `"\\"[`: 1,
	}
	for text, want := range tests {
		if got := depth([]byte(text)); max(0, got) != want {
			t.Errorf("depth of %s: want %d, got %d", text, want, got)
		}
	}
}

// answer has the handler answer one request over a real connection.
func answer(t *testing.T, h echo.HandlerFunc, prepare func(*http.Request)) (status int, header http.Header, body string) {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = Handler(nopLog)
	e.Any("/:name", h)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	prepare(request)
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(read)
}

func TestBody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body, contentType, encoding string
		status                      int
		says                        string
	}{
		"JSON":                       {`{"a":1}`, "application/json", "", 200, `{"a":1}`},
		"with a charset":             {`{}`, "application/json; charset=utf-8", "", 200, `{}`},
		"of a kind of its own":       {`{}`, "application/cloudevents+json", "", 200, `{}`},
		"without a type":             {`{}`, "", "", 200, `{}`},
		"text":                       {`{}`, "text/plain", "", 415, "application/json"},
		"a form":                     {`a=b`, "application/x-www-form-urlencoded", "", 415, "application/json"},
		"a type that is none":        {`{}`, ";", "", 415, "application/json"},
		"compressed":                 {`{}`, "application/json", "gzip", 415, "compressed"},
		"as long as may be":          {strings.Repeat(" ", 64), "", "", 200, strings.Repeat(" ", 64)},
		"longer than may be":         {strings.Repeat(" ", 65), "", "", 413, "64 bytes"},
		"as deep as may be":          {strings.Repeat("[", MaxDepth), "", "", 200, "[["},
		"deeper than may be":         {strings.Repeat("[", MaxDepth+1), "", "", 400, "32 levels"},
		"repaired":                   {`"\u0000"`, "", "", 200, `""`},
		"broken JSON is not our job": {`{`, "", "", 200, `{`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, says := answer(t, func(c echo.Context) error {
				body, err := Body(c, 64)
				if err != nil {
					return err
				}
				return c.String(200, string(body))
			}, func(r *http.Request) {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(tt.body)), int64(len(tt.body))
				r.Header.Set("Content-Type", tt.contentType)
				if tt.encoding != "" {
					r.Header.Set("Content-Encoding", tt.encoding)
				}
			})
			if status != tt.status || !strings.Contains(says, tt.says) {
				t.Errorf("want %d with %q, got %d %q", tt.status, tt.says, status, says)
			}
		})
	}
}

func TestParam(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"/5531999990001": "5531999990001", "/%2B55%20%2831%29": "+55 (31)", "/a%2Fb": "a/b", "/a%252Fb": "a%2Fb",
		"/a%00b": "ab", "/%FF": "\uFFFD", "/x@g.us": "x@g.us", "/1+1": "1+1",
	}
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			_, _, got := answer(t, func(c echo.Context) error { return c.String(200, Param(c, "name")) }, func(r *http.Request) {
				r.URL.Path, r.URL.RawPath = "", ""
				r.URL.Opaque = "//" + r.URL.Host + path
			})
			if got != want {
				t.Errorf("want %q, got %q", want, got)
			}
		})
	}
}
