package webhook

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fila/internal/conversation"
	"fila/internal/queue"
)

// maxIdentifier is how long ids and phones may be, in bytes: they are keys of indexes.
const maxIdentifier = 256

var kinds = []string{"text", "image", "audio", "video", "document", "sticker", "location", "contact", "button", "list", "unsupported"}

// accept makes messages for the queue of what was sent, or says which one is wrong, with a *Problem.
func accept(r request, name string, project Project, now time.Time) ([]queue.Message, error) {
	messages := make([]queue.Message, len(r.messages))
	for i := range r.messages {
		m, f := r.messages[i].accept(project, now)
		if f != nil {
			return nil, r.problem(i, f)
		}
		m.Project = name
		messages[i] = m
	}
	return messages, nil
}

func (in *incoming) accept(project Project, now time.Time) (queue.Message, *fault) {
	m := queue.Message{Address: in.Phone, Text: in.Text, Kind: in.Kind, ContactName: in.ContactName, SessionID: in.SessionID}
	for _, read := range []func(*queue.Message) *fault{in.readID, in.readMedia, in.readSentAt, in.readMetadata} {
		if f := read(&m); f != nil {
			return m, f
		}
	}
	m.Phone = conversation.Key(in.Phone, project.Country)
	if m.Kind == "" {
		m.Kind = "text"
	}
	switch {
	case strings.TrimSpace(m.Phone) == "":
		return m, wrong("phone", "is missing; give the identifier of who wrote")
	case len(m.Address) > maxIdentifier:
		return m, wrong("phone", "is over %d bytes", maxIdentifier)
	case !slices.Contains(kinds, m.Kind):
		return m, wrong("kind", "is not known; give one of %s", strings.Join(kinds, ", "))
	case m.Text == "" && m.Media == nil:
		return m, wrong("text", "and media are both empty; give one of them")
	case m.Text == "":
		m.Text = in.marker(m.Kind)
	}
	m.Ignored = project.Filters.reason(in, m, now)
	return m, nil
}

// readID takes a string as it is and a whole number as its decimal string.
func (in *incoming) readID(m *queue.Message) *fault {
	switch {
	case len(in.ID) == 0, string(in.ID) == "null":
		in.ID = nil
		return nil
	case in.ID[0] == '"':
		if err := json.Unmarshal(in.ID, &m.ID); err != nil {
			return wrong("id", "must be a string or a whole number")
		}
	default:
		id, ok := wholeNumber(string(in.ID))
		if !ok {
			return wrong("id", "must be a string or a whole number")
		}
		m.ID = id
	}
	if len(m.ID) > maxIdentifier {
		return wrong("id", "is over %d bytes", maxIdentifier)
	}
	return nil
}

// wholeNumber is the decimal string of a JSON number. Some languages write 9001 as 9001.0 or 9.001e3; beyond 2^53 such a
// number no longer says which whole number was meant.
func wholeNumber(number string) (string, bool) {
	if strings.Trim(strings.TrimPrefix(number, "-"), "0123456789") == "" {
		if number == "-0" {
			number = "0"
		}
		return number, true
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value != math.Trunc(value) || math.Abs(value) > 1<<53 {
		return "", false
	}
	return strconv.FormatInt(int64(value), 10), true
}

// readMedia keeps an object that says anything at all.
func (in *incoming) readMedia(m *queue.Message) *fault {
	if in.Media == nil || filled(in.Media.URL) == "" && filled(in.Media.MimeType) == "" && filled(in.Media.FileName) == "" {
		return nil
	}
	encoded, err := json.Marshal(in.Media)
	if err != nil {
		return wrong("media", "cannot be kept")
	}
	m.Media = encoded
	return nil
}

func filled(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (in *incoming) readSentAt(m *queue.Message) *fault {
	if in.SentAt == "" {
		return nil
	}
	// The letters of RFC 3339 may be small.
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(in.SentAt))
	if err != nil || at.Year() < 1 {
		return wrong("sent_at", "must be a time as RFC 3339 writes it, such as 2026-03-01T14:30:00Z")
	}
	m.SentAt = &at
	return nil
}

func (in *incoming) readMetadata(m *queue.Message) *fault {
	switch raw := bytes.TrimSpace(in.Metadata); {
	case len(raw) == 0, string(raw) == "null":
		return nil
	case raw[0] != '{':
		return wrong("metadata", "must be an object")
	case !storable(raw):
		return wrong("metadata", "holds a number that is too long or too large; send it as a string")
	default:
		m.Metadata = raw
		return nil
	}
}

const (
	// A number of at most this many characters and this exponent stays clear of what Postgres can keep: 131,072 digits before
	// the point, 16,383 behind it.
	maxNumber   = 1000
	maxExponent = 15000
)

// storable tells whether Postgres can keep every number of a valid JSON text.
func storable(text []byte) bool {
	for i := 0; i < len(text); {
		switch char := text[i]; {
		case char == '"':
			i += stringLength(text[i:])
		case char == '-' || char >= '0' && char <= '9':
			length := numberLength(text[i:])
			if !storableNumber(string(text[i : i+length])) {
				return false
			}
			i += length
		default:
			i++
		}
	}
	return true
}

func stringLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func numberLength(text []byte) int {
	for i, char := range text {
		if !bytes.ContainsRune([]byte("+-.eE0123456789"), rune(char)) {
			return i
		}
	}
	return len(text)
}

func storableNumber(number string) bool {
	if len(number) > maxNumber {
		return false
	}
	_, exponent, found := strings.Cut(strings.ToLower(number), "e")
	if !found {
		return true
	}
	value, err := strconv.Atoi(exponent)
	return err == nil && value >= -maxExponent && value <= maxExponent
}
