package config

import (
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// format is a named check of a text, with the sentence that a fault begins with.
type format struct {
	demand  string
	accepts func(text string) bool
}

// formats are what the tag "is" may name.
var formats = map[string]format{
	"address":        {"must be host:port with a port up to 65535, such as 127.0.0.1:8080", isAddress},
	"database":       {"must begin with postgres:// or postgresql://, or be keyword=value pairs", isDatabase},
	"signing secret": {"begins with whsec_ and must be base64 behind it", isSigningSecret},
	"token":          {"must not hold spaces or control characters", isToken},
	"url":            {"must be a whole http:// or https:// address", isURL},
}

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func isDatabase(text string) bool {
	if strings.Contains(text, "://") {
		return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
	}
	return text == "" || strings.Contains(text, "=")
}

func isSigningSecret(text string) bool {
	encoded, ok := strings.CutPrefix(text, "whsec_")
	if !ok {
		return true
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	return err == nil && len(key) > 0
}

// isToken refuses what could never arrive in an Authorization header as it is written.
func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) })
}

func isURL(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// loopback reports whether only programs of this machine reach a listen address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
