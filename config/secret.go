package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const hidden = "••••••"

// Secret is a text that no output shows by accident: every way of printing it gives a mark and its length.
type Secret string

// Reveal returns the text itself, for the one place that sends or compares it.
func (s Secret) Reveal() string { return string(s) }

// String returns a mark with the number of characters, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%s (%d characters)", hidden, utf8.RuneCountInString(string(s)))
}

// GoString is String: %#v shows no more than %v.
func (s Secret) GoString() string { return s.String() }

// Format prints String whatever the verb is; %x would otherwise spell the secret out.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.String()) }

// MarshalJSON encodes String.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML encodes String.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// DatabaseURL is a Postgres URL, or keywords and values, that prints without its passwords.
type DatabaseURL string

// Reveal returns the whole URL, for the one place that connects.
func (u DatabaseURL) Reveal() string { return string(u) }

// String returns the URL with every password hidden.
func (u DatabaseURL) String() string {
	if strings.Contains(string(u), "://") {
		return passwordParameter.ReplaceAllString(hideUserinfo(string(u)), "${1}"+hidden)
	}
	return passwordKeyword.ReplaceAllString(string(u), "${1}"+hidden)
}

// GoString is String: %#v shows no more than %v.
func (u DatabaseURL) GoString() string { return u.String() }

// Format prints String whatever the verb is.
func (u DatabaseURL) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, u.String()) }

// MarshalJSON encodes String.
func (u DatabaseURL) MarshalJSON() ([]byte, error) { return json.Marshal(u.String()) }

// MarshalYAML encodes String.
func (u DatabaseURL) MarshalYAML() (any, error) { return u.String(), nil }

var (
	passwordParameter = regexp.MustCompile(`(?i)([?&](?:ssl)?password=)[^&]*`)
	passwordKeyword   = regexp.MustCompile(`(?i)(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|(?:\\.|\S)+)`)
)

// hideUserinfo hides the password of a URL. It cuts the text rather than parsing it, since a URL that does not parse, or
// names several hosts, still holds a password; in doubt it hides too much.
func hideUserinfo(raw string) string {
	start := strings.Index(raw, "://")
	end := strings.LastIndex(raw, "@")
	if start < 0 || end < start+3 {
		return raw
	}
	start += 3
	colon := strings.Index(raw[start:end], ":")
	if colon < 0 {
		return raw
	}
	return raw[:start+colon+1] + hidden + raw[end:]
}

// Headers are sent with every call; a value may be a credential, so all are secrets.
type Headers map[string]Secret

// Reveal returns the headers as they are sent.
func (h Headers) Reveal() map[string]string {
	plain := make(map[string]string, len(h))
	for name, secret := range h {
		plain[name] = secret.Reveal()
	}
	return plain
}

// Account is a provider's credentials and line by the names of its own API.
type Account map[string]Secret
