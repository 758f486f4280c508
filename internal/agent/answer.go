package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"fila/internal/call"
)

var errNotAnswer = errors.New("not an agent's answer")

func read(r call.Response) (Answer, error) {
	if r.Truncated && r.Status == http.StatusOK {
		return Answer{}, &call.Failure{Outcome: call.Permanent, Reason: "agent answered more than 1 MiB"}
	}
	answer, err := ParseAnswer(r.Status, r.Body)
	if f, ok := errors.AsType[*call.Failure](err); ok {
		f.RetryAfter = r.RetryAfter
	}
	return answer, err
}

// ParseAnswer says what a status and a body of the agent mean. The error is a *call.Failure: NotDone for 409, 423, 425, 429
// and 5xx, Permanent for every other status and for a 200 whose body is not an answer.
//
// An answer is an empty body, or an object with any of reply (a string), replies (a list of strings) and handoff (true or
// false); each may be null, other keys do not matter. Where reply and replies both hold text nobody can say what is to
// be sent, and that is no answer. NUL, which Postgres cannot store, is taken out, and what is not UTF-8 becomes U+FFFD.
func ParseAnswer(status int, body []byte) (Answer, error) {
	switch {
	case status == http.StatusOK:
		answer, err := parse(body)
		if err != nil {
			return Answer{}, &call.Failure{Outcome: call.Permanent, Reason: "agent answered 200 with a body that is not an answer"}
		}
		return answer, nil
	case status == http.StatusAccepted:
		return Answer{Later: true}, nil
	case status == http.StatusNoContent:
		return Answer{}, nil
	case notDone(status):
		return Answer{}, call.Response{Status: status}.Failure(call.NotDone, "agent")
	default:
		return Answer{}, call.Response{Status: status}.Failure(call.Permanent, "agent")
	}
}

func notDone(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status <= 599
}

func parse(body []byte) (Answer, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Answer{}, nil
	}
	// A map and not a struct: keys are matched exactly, and null can be told from an object.
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(body, &keys); err != nil || keys == nil {
		return Answer{}, errNotAnswer
	}
	var reply string
	var list []*string // pointers, since null is no string
	var answer Answer
	for key, into := range map[string]any{"reply": &reply, "replies": &list, "handoff": &answer.Handoff} {
		if value, ok := keys[key]; ok && json.Unmarshal(value, into) != nil {
			return Answer{}, errNotAnswer
		}
	}
	answer.Replies = sendable(nil, reply)
	one := len(answer.Replies) > 0
	for _, text := range list {
		if text == nil {
			return Answer{}, errNotAnswer
		}
		answer.Replies = sendable(answer.Replies, *text)
	}
	if one && len(answer.Replies) > 1 {
		return Answer{}, errNotAnswer
	}
	return answer, nil
}

// sendable appends the text unless nothing but white space is left of it. Decoding has made it valid UTF-8.
func sendable(replies []string, text string) []string {
	text = strings.ReplaceAll(text, "\x00", "")
	if strings.TrimSpace(text) == "" {
		return replies
	}
	return append(replies, text)
}
