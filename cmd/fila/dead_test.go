package main

import (
	"strings"
	"testing"
)

func TestDeadListAndShow(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("dead", "list").expect(t, 0, "No dead turns.")
	id, running := o.dead("clinic", phone, "oi"), o.turn("other", phone, "olá")
	r := o.run("dead", "list").expect(t, 0, id, "status 500")
	if strings.Contains(r.out, "other") {
		t.Errorf("got %q", r.out)
	}
	o.run("dead", "list", "--json").expect(t, 0, `"id": "`+id+`"`)
	r.expect(t, 0, "LEFT", "13d")
	o.run("dead", "show", id).expect(t, 0, "attempt 1, agent: status 500", "kept until", ", 13d left")
	o.run("dead", "show", running).expect(t, 1, "running", "fila turns show "+running)
}

func TestRedrive(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.dead("clinic", phone, "oi")
	o.run("dead", "redrive", "--by", "ana", "--reason", "agent deployed", id).expect(t, 0, "turn "+id+" redriven")
	if o.state(id) != "retrying" {
		t.Errorf("the turn is %s", o.state(id))
	}
	if who := lookUp[string](o, `SELECT actor || ': ' || reason FROM audit WHERE action = 'redrive'`); who != "ana: agent deployed" {
		t.Errorf("audit says %q", who)
	}
	o.run("dead", "redrive", id, "--by", "ana", "--reason", "again").expect(t, 1, "turn "+id+" was not redriven", "retrying")
}

func TestRedriveOfSeveral(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	first, second := o.dead("clinic", phone, "oi"), o.dead("other", phone, "olá")
	o.run("dead", "redrive", first, "999999", second, first, "--by", "ana", "--reason", "x").expect(t, 1, "turn "+first+" redriven", "turn "+second+" redriven",
		"turn 999999 was not redriven")
}

func TestRedriveBehindAnAnswer(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id, later := o.dead("clinic", phone, "oi"), o.turn("clinic", phone, "alô?")
	o.exec(`SELECT fila_reply('clinic', $1::text::bigint, 1, NULL, '{}', false, true, 'instance-1', 30)`, later)
	o.run("dead", "redrive", id, "--by", "ana", "--reason", "x").expect(t, 1, "later turn")
	o.run("dead", "redrive", id, "--by", "ana", "--reason", "x", "--force").expect(t, 0)
}

func TestRedrivePreview(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.dead("clinic", phone, "oi")
	half := o.turn("other", phone, "olá")
	o.exec(`SELECT fila_reply('other', $1::text::bigint, 1, 'a b', ARRAY['a', 'b'], false, true, 'instance-1', 30)`, half)
	o.exec(`SELECT fila_sent($1::text::bigint, 1, 1, 'out-1', true)`, half)
	o.exec(`SELECT fila_fail($1::text::bigint, 1, 'delivery', 2, 'dead', 'status 400', true, 0)`, half)

	o.run("dead", "redrive", "--dry-run", id, half, "999999").expect(t, 0, "ask the agent again", "send part 2 of 2", "be refused: turn 999999", "Nothing was changed")
	if o.state(id) != "dead" || lookUp[int](o, `SELECT count(*) FROM audit`) != 0 {
		t.Errorf("a preview changed something: the turn is %s", o.state(id))
	}
	var document struct {
		WouldRedrive []preview `json:"would_redrive"`
	}
	o.json(&document, "dead", "redrive", "--dry-run", id)
	if got := document.WouldRedrive; len(got) != 1 || got[0].ID != id || got[0].Refused || got[0].AgeSeconds == nil || got[0].Messages != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestRedrivePreviewWhileSuspended(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.dead("clinic", phone, "oi")
	o.run("conversation", "suspend", "clinic", phone, "--by", "ana", "--reason", "looking into it").expect(t, 0)
	o.run("dead", "redrive", "--dry-run", id).expect(t, 0, "wait until the conversation is resumed, then ask the agent again")
}

func TestRedriveOfAProject(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	second := o.dead("clinic", phone, "dois")
	third := o.dead("clinic", phone, "três")
	first, elsewhere := o.dead("clinic", "5531999990002", "um"), o.dead("other", phone, "olá")
	o.exec(`UPDATE turns SET first_at = first_at - interval '1 hour' WHERE id = $1::text::bigint`, first)
	refused := "another turn of the conversation is open"

	var document struct {
		WouldRedrive []preview `json:"would_redrive"`
	}
	o.json(&document, "dead", "redrive", "--project", "clinic", "--dry-run")
	got := document.WouldRedrive
	if len(got) != 3 || got[0].ID != first || got[0].Refused || got[1].ID != second || got[1].Refused || got[2].ID != third || !strings.Contains(got[2].Would, refused) {
		t.Errorf("got %+v", got)
	}

	r := o.run("dead", "redrive", "--project", "clinic", "--by", "ana", "--reason", "agent deployed").expect(t, 1, "turn "+third+" was not redriven: "+refused)
	if r.out != "turn "+first+" redriven\nturn "+second+" redriven\n" {
		t.Errorf("got %q", r.out)
	}
	if o.state(third) != "dead" || o.state(elsewhere) != "dead" {
		t.Error("more than was asked for was redriven")
	}
	if n := lookUp[int](o, `SELECT count(*) FROM audit WHERE action = 'redrive' AND actor = 'ana' AND reason = 'agent deployed'`); n != 2 {
		t.Errorf("%d actions are on record", n)
	}
}

func TestRedriveOfAll(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("dead", "redrive", "--all", "--by", "ana", "--reason", "x").expect(t, 0, "No dead turns.")
	o.run("dead", "redrive", "--all", "--dry-run").expect(t, 0, "No dead turns.")
	here, there := o.dead("clinic", phone, "oi"), o.dead("other", phone, "olá")
	o.run("dead", "redrive", "--all", "--by", "ana", "--reason", "x").expect(t, 0, "turn "+here+" redriven", "turn "+there+" redriven")
	o.run("dead", "redrive", "--project", "nobody", "--by", "ana", "--reason", "x").expect(t, 1, `"nobody" is not known`)
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.dead("clinic", phone, "oi")
	o.run("dead", "discard", id, "--by", "ana", "--reason", "ligou").expect(t, 0, "turn "+id+" discarded")
	if o.state(id) != "discarded" {
		t.Errorf("the turn is %s", o.state(id))
	}
}
