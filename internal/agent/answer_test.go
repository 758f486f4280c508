package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"fila/internal/call"
)

func TestParseAnswerOf200(t *testing.T) {
	t.Parallel()
	tests := []struct {
		body string
		want Answer
		bad  bool
	}{
		{body: ``},
		{body: " \n"},
		{body: `{}`},
		{body: `{"reply":null}`},
		{body: `{"reply":""}`},
		{body: `{"reply":" \n\u00a0"}`},
		{body: `{"replies":[]}`},
		{body: `{"replies":null,"handoff":null}`},
		{body: `{"Reply":"a","other":{"x":[1]}}`},
		{body: `{"replies":["", " "]}`},
		{body: `{"reply":"a"}`, want: Answer{Replies: []string{"a"}}},
		{body: `{"reply":" a\n"}`, want: Answer{Replies: []string{" a\n"}}},
		{body: `{"replies":["a","","b"]}`, want: Answer{Replies: []string{"a", "b"}}},
		{body: `{"reply":"a","replies":[]}`, want: Answer{Replies: []string{"a"}}},
		{body: `{"reply":"","replies":["a","b"]}`, want: Answer{Replies: []string{"a", "b"}}},
		{body: `{"handoff":true}`, want: Answer{Handoff: true}},
		{body: `{"handoff":true,"reply":"tchau"}`, want: Answer{Handoff: true, Replies: []string{"tchau"}}},
		{body: `{"reply":"a\u0000b"}`, want: Answer{Replies: []string{"ab"}}},
		{body: `{"reply":"\u0000 "}`},
		{body: "{\"reply\":\"a\xffb\"}", want: Answer{Replies: []string{"a\ufffdb"}}},
		{body: `{"reply":"\ud83e"}`, want: Answer{Replies: []string{"\ufffd"}}},
		{body: `bom dia`, bad: true},
		{body: `"bom dia"`, bad: true},
		{body: `[1]`, bad: true},
		{body: `null`, bad: true},
		{body: `{"reply":"a"`, bad: true},
		{body: `{"reply":5}`, bad: true},
		{body: `{"reply":["a"]}`, bad: true},
		{body: `{"replies":"a"}`, bad: true},
		{body: `{"replies":["a",null]}`, bad: true},
		{body: `{"replies":["a",1]}`, bad: true},
		{body: `{"handoff":"yes"}`, bad: true},
		{body: `{"reply":"a","replies":["b"]}`, bad: true},
		{body: `{"reply":"a"} x`, bad: true},
		{body: `<html>`, bad: true},
	}
	for _, tt := range tests {
		got, err := ParseAnswer(200, []byte(tt.body))
		if tt.bad {
			if call.OutcomeOf(err) != call.Permanent {
				t.Errorf("%s: want permanent, got %+v, %v", tt.body, got, err)
			}
			continue
		}
		if err != nil || got.Handoff != tt.want.Handoff || got.Later || !slices.Equal(got.Replies, tt.want.Replies) {
			t.Errorf("%s: want %+v, got %+v, %v", tt.body, tt.want, got, err)
		}
	}
}

func TestParseAnswerByStatus(t *testing.T) {
	t.Parallel()
	outcomes := map[call.Outcome][]int{
		call.Done:      {200, 202, 204},
		call.NotDone:   {409, 423, 425, 429, 500, 502, 503, 504, 599},
		call.Permanent: {101, 201, 205, 206, 226, 300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 408, 410, 413, 422, 499, 600, 999},
	}
	for want, statuses := range outcomes {
		for _, status := range statuses {
			got, err := ParseAnswer(status, nil)
			if call.OutcomeOf(err) != want || got.Later != (status == 202) {
				t.Errorf("%d: want %v, got %+v, %v", status, want, got, err)
			}
		}
	}
	if _, err := ParseAnswer(503, nil); err.Error() != "agent answered 503" {
		t.Errorf("reason: got %v", err)
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, body := range []string{``, `{"reply":"a"}`, `{"replies":["a","\u0000"],"handoff":true}`, "{\"reply\":\"\xff\"}", `[`, `null`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, err := ParseAnswer(200, body)
		if err != nil {
			if failure, ok := errors.AsType[*call.Failure](err); !ok || failure.Outcome != call.Permanent {
				t.Errorf("want a permanent failure, got %v", err)
			}
			return
		}
		for _, text := range answer.Replies {
			if strings.TrimSpace(text) == "" || strings.Contains(text, "\x00") || !utf8.ValidString(text) {
				t.Errorf("cannot be stored or sent: %q", text)
			}
		}
	})
}
