package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fila/internal/agent"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	c := setup(t)
	for _, state := range []string{"done", "dead", "done"} {
		c.turn("clinic", state)
	}
	c.turn("other", "done")
	tests := []struct{ query, ids, before string }{
		{"", "3 2 1", "<nil>"},
		{"?limit=2", "3 2", "2"},
		{"?limit=2&before=2", "1", "<nil>"},
		{"?limit=3", "3 2 1", "<nil>"},
		{"?limit=5000", "3 2 1", "<nil>"},
		{"?state=dead", "2", "<nil>"},
		{"?state=running", "", "<nil>"},
		{"?phone=" + short, "3 2 1", "<nil>"},
		{"?phone=1", "", "<nil>"},
		{"?phone=%00%FF", "", "<nil>"},
	}
	for _, tt := range tests {
		a := c.get("turns" + tt.query)
		var ids []string
		turns, _ := a.field("turns").([]any)
		for _, turn := range turns {
			ids = append(ids, fmt.Sprint(turn.(map[string]any)["id"]))
		}
		if a.status != 200 || strings.Join(ids, " ") != tt.ids || fmt.Sprint(a.field("before")) != tt.before || turns == nil {
			t.Errorf("%s: want %q before %s, got %d %s", tt.query, tt.ids, tt.before, a.status, a.text)
		}
	}
	for query, words := range map[string]string{
		"?state=lost": "state is not known; give one of running", "?limit=0": "limit must be", "?limit=many": "limit must be", "?before=x": "before must be the id of a turn",
		"?before=-1": "before must be", "?phone=" + strings.Repeat("1", 257): "phone is over 256 bytes",
	} {
		c.want(c.get("turns"+query), 422, words)
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	c := setup(t)
	a := c.get(fmt.Sprint("turns/", c.turn("clinic", "running")))
	if a.status != 200 || a.field("id") != "1" || a.field("phone") != phone || a.field("text") != "oi" || fmt.Sprint(a.field("errors"), a.field("parts"), a.field("reply")) != "[] [] <nil>" {
		t.Errorf("got %d %s", a.status, a.text)
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	c := setup(t)
	path := fmt.Sprintf("turns/%d/confirm", c.turn("clinic", "running"))
	c.want(c.post(path, ""), 200, `{"proceed":true}`)
	c.want(c.send("POST", path, "token-clinic", "{}", "X-Fila-Attempt", "1"), 200, `{"proceed":true}`)
	c.want(c.send("POST", path, "token-clinic", "{}", "X-Fila-Attempt", "x"), 422, "X-Fila-Attempt")
	stale := c.send("POST", path, "token-clinic", "{}", "X-Fila-Attempt", "2")
	c.want(stale, 409, `"reason":"stale"`)
	if stale.field("proceed") != false {
		t.Errorf("got %s", stale.text)
	}
	c.want(c.post("conversations/"+phone+"/takeover", `{"by":"ana"}`), 200, "human")
	c.want(c.post(path, ""), 409, `"reason":"human"`)
}

func TestReply(t *testing.T) {
	t.Parallel()
	c := setup(t)
	tests := []struct {
		name, verdict string
		err           error
		body, attempt string
		status        int
		words         string
	}{
		{"sent", "send", nil, `{"reply":"pronto"}`, "2", 200, `{"status":"send"}`},
		{"held", "held", nil, `{"replies":["pronto"]}`, "2", 200, `{"status":"held"}`},
		{"again", "repeated", nil, `{"reply":"pronto"}`, "2", 200, `{"status":"repeated"}`},
		{"too late", "stale", nil, `{"reply":"pronto"}`, "2", 409, "takes no reply any more"},
		{"no such turn", "absent", nil, `{"reply":"pronto"}`, "2", 404, "turn 7 is not known here"},
		{"database away", "", fmt.Errorf("reply: %w", context.DeadlineExceeded), `{"reply":"pronto"}`, "2", 503, "repeat"},
		{"a mistake of ours", "", errors.New("canario"), `{"reply":"pronto"}`, "2", 500, "an error of the service"},
		{"broken", "", nil, `{"reply":`, "2", 400, "the body is not JSON"},
		{"no answer", "", nil, `{"reply":5}`, "2", 422, "reply (a string)"},
		{"no attempt", "", nil, `{"reply":"pronto"}`, "0", 422, "X-Fila-Attempt"},
	}
	for _, tt := range tests {
		c.replies = func(project string, turn int64, attempt *int, answer agent.Answer) (string, error) {
			if project != "clinic" || turn != 7 || attempt == nil || *attempt != 2 || strings.Join(answer.Replies, "") != "pronto" {
				t.Errorf("%s: got %s %d %v %+v", tt.name, project, turn, attempt, answer)
			}
			return tt.verdict, tt.err
		}
		c.want(c.send("POST", "turns/7/reply", "token-clinic", tt.body, "X-Fila-Attempt", tt.attempt), tt.status, tt.words)
	}
	c.replies = func(_ string, _ int64, attempt *int, answer agent.Answer) (string, error) {
		if attempt != nil || len(answer.Replies) != 0 || !answer.Handoff {
			t.Errorf("got %v %+v", attempt, answer)
		}
		return "done", nil
	}
	c.want(c.post("turns/7/reply", `{"handoff":true}`), 200, `{"status":"done"}`)
}

func TestTurnActions(t *testing.T) {
	t.Parallel()
	c := setup(t)
	id := c.turn("clinic", "dead")
	path := fmt.Sprintf("turns/%d/", id)
	c.want(c.post(path+"redrive", `{"reason":"r"}`), 422, "by is required")
	c.want(c.post(path+"redrive", `{"by":"ana","reason":"r","dry_run":true}`), 422, "dry_run is no field of an action")
	c.want(c.post(path+"redrive", `{"by":"ana","reason":"r","force":"yes"}`), 422, "force must be true or false")
	c.want(c.post("turns/999/redrive", `{"by":"ana","reason":"r"}`), 404, "turn 999 is not known here")
	c.want(c.post("turns/x/redrive", `{"by":"ana","reason":"r"}`), 404, "no such turn")
	c.wakes()
	c.want(c.post(path+"redrive", `{"by":"ana","reason":"r"}`), 200, `{"status":"retrying"}`)
	c.want(c.post(path+"redrive", `{"by":"ana","reason":"r"}`), 409, "only a dead turn can be redriven")
	c.exec(`UPDATE turns SET state = 'unknown', reason = 'the test', finished_at = NULL WHERE id = $1`, id)
	c.want(c.post(path+"resolve", `{"by":"ana","reason":"r","outcome":"perhaps"}`), 422, "outcome must be done or not_done")
	c.want(c.post(path+"resolve", `{"by":"ana","reason":"r","outcome":"not_done"}`), 200, `{"status":"retrying"}`)
	c.want(c.post(path+"discard", `{"by":"ana"}`), 422, "reason is required")
	c.want(c.post(path+"discard", `{"by":"ana","reason":"r"}`), 200, `{"status":"discarded"}`)
	c.want(c.post(path+"discard", `{"by":"ana","reason":"r"}`), 409, "which is its end")
	c.wakes("clinic "+phone, "clinic "+phone, "clinic "+phone)
}
