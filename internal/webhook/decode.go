package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"fila/internal/api/entry"
)

// maxMessages is how many messages one request may hold.
const maxMessages = 1000

// incoming is one message as it is sent. Unknown keys do not matter, null is the same as absent.
type incoming struct {
	ID          json.RawMessage `json:"id"`
	Phone       string          `json:"phone"`
	Text        string          `json:"text"`
	ContactName string          `json:"contact_name"`
	SessionID   string          `json:"session_id"`
	Kind        string          `json:"kind"`
	Media       *media          `json:"media"`
	SentAt      string          `json:"sent_at"`
	FromMe      bool            `json:"from_me"`
	Team        string          `json:"team"`
	Status      string          `json:"status"`
	Metadata    json.RawMessage `json:"metadata"`
}

// media is kept with these keys alone.
type media struct {
	URL      *string `json:"url"`
	MimeType *string `json:"mime_type"`
	FileName *string `json:"file_name"`
}

// request is a body that could be read: one message, or an array of them.
type request struct {
	messages []incoming
	array    bool
}

// decode reads a body. The error is a *Problem: 400 for what is not JSON, or neither an object nor an array; 422 for a value of
// the wrong kind.
func decode(body []byte) (request, error) {
	var r request
	decoder := json.NewDecoder(bytes.NewReader(body))
	switch first := bytes.TrimLeft(body, " \t\r\n"); {
	case len(first) == 0:
		return r, entry.Refuse(http.StatusBadRequest, "the body is empty; send a message as JSON")
	case first[0] == '[':
		r.array = true
		if err := r.readArray(decoder); err != nil {
			return r, err
		}
	case first[0] == '{':
		if err := r.readMessage(decoder); err != nil {
			return r, err
		}
	default:
		return r, entry.Refuse(http.StatusBadRequest, "the body is neither a message (an object) nor an array of messages")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return r, notJSON(decoder)
	}
	return r, nil
}

func (r *request) readArray(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return notJSON(decoder)
	}
	for decoder.More() {
		if len(r.messages) == maxMessages {
			return entry.Refuse(http.StatusUnprocessableEntity, "more than %d messages; send them in several requests", maxMessages)
		}
		if err := r.readMessage(decoder); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return notJSON(decoder)
	}
	return nil
}

func (r *request) readMessage(decoder *json.Decoder) error {
	var m incoming
	err := decoder.Decode(&m)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		return r.problem(len(r.messages), mistyping(mistyped))
	case err != nil:
		return notJSON(decoder)
	}
	r.messages = append(r.messages, m)
	return nil
}

// notJSON says where, and not what: the words of the decoder quote the text.
func notJSON(decoder *json.Decoder) error {
	return entry.Refuse(http.StatusBadRequest, "the body is not JSON behind byte %d", decoder.InputOffset())
}

// fault is what is wrong with one message; field is "" for the whole.
type fault struct{ field, wrong string }

func wrong(field, format string, arguments ...any) *fault {
	return &fault{field: field, wrong: fmt.Sprintf(format, arguments...)}
}

func mistyping(err *json.UnmarshalTypeError) *fault {
	kinds := map[string]string{
		"": "an object", "from_me": "true or false", "media": "an object with url, mime_type and file_name",
	}
	kind, ok := kinds[err.Field]
	if !ok {
		kind = "a string"
	}
	return wrong(err.Field, "must be %s", kind)
}

// problem names the field and, in an array, which message it is.
func (r *request) problem(place int, f *fault) *entry.Problem {
	p := entry.Refuse(http.StatusUnprocessableEntity, "%s", f.wrong)
	p.Members = map[string]any{}
	if f.field != "" {
		p.Detail = f.field + " " + p.Detail
		p.Members["field"] = f.field
	} else {
		p.Detail = "a message " + p.Detail
	}
	if r.array {
		p.Detail = fmt.Sprintf("message %d of the array: %s", place+1, p.Detail)
		p.Members["index"] = place
	}
	return p
}
