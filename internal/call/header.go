package call

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// maxRetryAfter bounds what a receiver may ask for, so that a wrong header cannot park a patient for a day.
const maxRetryAfter = time.Hour

// reserved are the headers that are not the operator's to set.
var reserved = map[string]bool{
	"Idempotency-Key": true, "X-Fila-Attempt": true, "Webhook-Id": true, "Webhook-Timestamp": true, "Webhook-Signature": true,
	"Host": true, "Content-Length": true, "Content-Encoding": true, "Transfer-Encoding": true, "Accept-Encoding": true,
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true, "Upgrade": true, "Expect": true,
}

func baseHeader(o Options, user *url.Userinfo) (http.Header, error) {
	agent := "fila"
	if o.Version != "" {
		agent += "/" + o.Version
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {agent}}
	if user != nil {
		password, _ := user.Password()
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	for name, value := range o.Headers {
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		header.Set(name, value)
	}
	return header, nil
}

func checkHeader(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("header %q: not a header name; use letters, digits and dashes", name)
	}
	if reserved[http.CanonicalHeaderKey(name)] {
		return fmt.Errorf("header %q: set by fila or by HTTP itself; remove it", name)
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("header %q: its value holds a control character; remove it", name)
	}
	return nil
}

// parseURL keeps the URL itself out of its errors: it may hold credentials.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("url cannot be parsed; give one such as https://host/path")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("url has the scheme %q; give http or https", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, errors.New("url has no host; give one such as https://host/path")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

func withQuery(base *url.URL, query url.Values) *url.URL {
	u := *base
	if u.RawQuery != "" && len(query) > 0 {
		u.RawQuery += "&"
	}
	u.RawQuery += query.Encode()
	return &u
}

// retryAfter reads seconds or a date. A date is measured against the receiver's own clock where it sent that, since ours may
// differ from it.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if theirs, err := http.ParseTime(header.Get("Date")); err == nil {
		now = theirs
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
