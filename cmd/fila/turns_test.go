package main

import (
	"strings"
	"testing"

	"fila/internal/ledger"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.turn("clinic", phone, "oi")
	o.run("turns", "resolve", id, "--outcome", "done", "--by", "ana", "--reason", "looked").expect(t, 1, "running")
	o.exec(`SELECT fila_fail($1::text::bigint, 1, 'agent', NULL, 'unknown', 'no answer', true, 0)`, id)
	o.run("turns", "resolve", id, "--outcome", "perhaps", "--by", "ana", "--reason", "looked").expect(t, 2, "perhaps")
	o.run("turns", "resolve", id, "--outcome", "done", "--reason", "looked").expect(t, 2, "--by is missing")
	o.run("turns", "resolve", id, "--outcome", "not_done", "--by", "ana", "--reason", "looked").expect(t, 0, "turn "+id+" resolved")
	if o.state(id) != "retrying" {
		t.Errorf("the turn is %s", o.state(id))
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.dead("clinic", phone, "oi")
	o.push("clinic", phone, "alô")
	r := o.run("status").expect(t, 0, "clinic", "other")
	rows := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(rows) != 3 || len(strings.Fields(rows[1])) != 11 {
		t.Errorf("got %q", rows)
	}
	var document struct{ Projects []ledger.Overview }
	o.json(&document, "status")
	if len(document.Projects) != 2 || document.Projects[0].Dead != 1 || document.Projects[0].Waiting != 1 {
		t.Errorf("got %+v", document)
	}
}

func TestTurnsList(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("turns").expect(t, 0, "No such turns.")
	first, second := o.turn("clinic", phone, "oi"), o.turn("other", phone, "olá")
	o.run("turns").expect(t, 0, first, second, "running", "quiet")
	r := o.run("turns", "--project", "other").expect(t, 0, second)
	if strings.Contains(r.out, "clinic") || strings.Contains(r.out, "olá") {
		t.Errorf("got %q", r.out)
	}
	o.run("turns", "--limit", "1").expect(t, 0, "--before "+second)

	var got ledger.Page
	o.json(&got, "turns", "--project", "clinic", "--phone", "+55 31 9999-0001", "--state", "running")
	if len(got.Turns) != 1 || got.Turns[0].ID != first || got.Before != nil {
		t.Errorf("got %+v", got)
	}
	o.json(&got, "turns", "--limit", "1", "--before", second)
	if len(got.Turns) != 1 || got.Turns[0].ID != first || got.Before != nil {
		t.Errorf("got %+v", got)
	}
	o.run("turns", "--project", "nobody").expect(t, 1, `"nobody" is not known`)
	o.json(&got, "turns", "--state", "done")
	if got.Turns == nil || len(got.Turns) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestTurnsShow(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.turn("clinic", phone, "oi\n\x1b[31mtudo bem?")
	o.exec(`SELECT fila_reply('clinic', $1::text::bigint, 1, 'Temos 14h', ARRAY['Temos', '14h'], false, true, 'instance-1', 30)`, id)
	o.exec(`SELECT fila_sent($1::text::bigint, 1, 1, 'out-1', true)`, id)
	o.exec(`SELECT fila_fail($1::text::bigint, 1, 'delivery', 2, 'unknown', 'no answer in time', true, 0)`, id)
	r := o.run("turns", "show", id).expect(t, 0, "turn "+id+" unknown", "oi\n", "Temos 14h", "1 of 2  sent, 1 attempt, provider's id out-1", "2 of 2  unknown",
		"attempt 1, delivery: no answer in time")
	if strings.Contains(r.out, "\x1b") {
		t.Error("a patient's text steers the terminal")
	}
	for _, args := range [][]string{{"turns", "show", "--json", id}, {"turns", "show", id, "--json"}} {
		o.run(args...).expect(t, 0, `"id": "`+id+`"`, `"provider_id": "out-1"`, `"state": "unknown"`, `"next_attempt_at": null`)
	}
	o.run("turns", "show", "999999").expect(t, 1, "999999", "fila turns")
}
