package entry

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// MaxBody is the longest body of a request, in bytes.
const MaxBody = 1 << 20

// MaxDepth is how deep arrays and objects of a body may lie in one another.
const MaxDepth = 32

// Body reads a request's JSON, up to limit bytes, and repairs it: see Repair. What it returns may still not be JSON. The
// error is a *Problem.
func Body(c echo.Context, limit int64) ([]byte, error) {
	request := c.Request()
	if err := mediaType(request.Header); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if request.ContentLength > 0 {
		// What is announced need not come: memory is given for what has arrived.
		body.Grow(int(min(request.ContentLength, 8<<10)) + bytes.MinRead)
	}
	n, err := body.ReadFrom(io.LimitReader(request.Body, limit+1))
	switch {
	case n > limit:
		return nil, Refuse(http.StatusRequestEntityTooLarge, "the body is over %d bytes; send less at once", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, Refuse(http.StatusRequestTimeout, "the body did not arrive in time")
	case err != nil:
		return nil, Refuse(http.StatusBadRequest, "the body broke off")
	}
	repaired := Repair(body.Bytes())
	if depth(repaired) > MaxDepth {
		return nil, Refuse(http.StatusBadRequest, "the body is nested deeper than %d levels", MaxDepth)
	}
	return repaired, nil
}

// mediaType refuses a body that says it is not JSON. One that says nothing is given the benefit of the doubt.
func mediaType(header http.Header) error {
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return Refuse(http.StatusUnsupportedMediaType, "the body is compressed; send it as it is")
	}
	given := header.Get("Content-Type")
	if given == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(given)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return Refuse(http.StatusUnsupportedMediaType, "the body is not JSON by its Content-Type; send application/json")
	}
	return nil
}

// Repair makes JSON text that Postgres can keep: NUL is taken out of strings and keys, half a surrogate pair and bytes that
// are not UTF-8 become U+FFFD, a byte order mark goes. Text that needs nothing of it is returned as it is.
func Repair(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	if !bytes.Contains(body, []byte(`\u0000`)) && !bytes.Contains(body, []byte(`\ud`)) && !bytes.Contains(body, []byte(`\uD`)) {
		return body
	}
	repaired := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		take, instead := escape(body[i:])
		if instead != nil {
			repaired = append(repaired, instead...)
		} else {
			repaired = append(repaired, body[i:i+take]...)
		}
		i += take
	}
	return repaired
}

// escape looks at one byte, or at one escape sequence: how long it is, and what stands in its place, nil for itself.
func escape(text []byte) (take int, instead []byte) {
	if text[0] != '\\' || len(text) < 2 {
		return 1, nil
	}
	code, ok := hex(text)
	switch {
	case !ok:
		return 2, nil
	case code == 0:
		return 6, []byte{}
	case code < 0xD800 || code > 0xDFFF:
		return 6, nil
	}
	if low, ok := hex(text[6:]); code < 0xDC00 && ok && low >= 0xDC00 && low <= 0xDFFF {
		return 12, nil
	}
	return 6, []byte("\uFFFD")
}

// hex reads \uXXXX.
func hex(text []byte) (code int, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, digit := range text[2:6] {
		code <<= 4
		switch {
		case digit >= '0' && digit <= '9':
			code += int(digit - '0')
		case digit|0x20 >= 'a' && digit|0x20 <= 'f':
			code += int(digit|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return code, true
}

// depth is how deep the text goes, before anything recursive sees it.
func depth(text []byte) int {
	deepest, level, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch char := text[i]; {
		case inString && char == '\\':
			i++
		case char == '"':
			inString = !inString
		case inString:
		case char == '[' || char == '{':
			level++
			deepest = max(deepest, level)
		case char == ']' || char == '}':
			level--
		}
	}
	return deepest
}

// Param is a parameter of the path, unescaped, without NUL and as valid UTF-8.
func Param(c echo.Context, name string) string {
	value := c.Param(name)
	// The router matches the escaped path only where unescaping it would lose something.
	if c.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
	}
	return Text(value)
}

// Text is a value of the path or the query as Postgres can keep it.
func Text(value string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(value, "\uFFFD"), "\x00", "")
}
