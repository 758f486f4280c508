package main

import (
	"encoding/json"
	"strings"
	"testing"

	"fila/internal/ledger"
)

func (o operator) mode() string {
	o.Helper()
	return lookUp[string](o, `SELECT fila_mode(mode, until) FROM conversations WHERE project = 'clinic' AND phone = $1`, phone)
}

func TestConversationIsSteered(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	for _, step := range []struct{ args, mode string }{
		{"takeover clinic " + phone + " --by ana --minutes 0.5", "human"},
		{"release --by ana clinic 553199990001", "agent"},
		{"suspend clinic " + phone + " --by ana --reason x", "suspended"},
		{"resume clinic " + phone + " --by ana --waiting answer", "agent"},
	} {
		o.run(append([]string{"conversation"}, strings.Fields(step.args)...)...).expect(t, 0)
		if o.mode() != step.mode {
			t.Errorf("mode %s after %s", o.mode(), step.args)
		}
	}
	o.run("conversation", "resume", "clinic", phone, "--by", "ana", "--waiting", "answer").expect(t, 1, "not suspended")
	o.run("conversation", "takeover", "nobody", phone, "--by", "ana").expect(t, 1, "nobody")
	o.run("conversation", "takeover", "clinic", phone, "--by", "ana", "--minutes", "0").expect(t, 1, "minutes")
}

func TestFlush(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("conversation", "flush", "clinic", phone).expect(t, 0, "nothing waits")
	o.push("clinic", phone, "oi")
	o.run("conversation", "flush", "clinic", phone).expect(t, 0, "due now")
	if actor := lookUp[string](o, `SELECT actor FROM audit WHERE action = 'flush'`); actor == "" || actor == "api" {
		t.Errorf("audit names %q", actor)
	}
}

func TestTyping(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("conversation", "typing", "clinic", phone).expect(t, 0, "nothing waits")
	o.run("conversation", "typing", "nobody", phone).expect(t, 1, "nobody", "fila status")
	o.push("clinic", phone, "oi")
	o.run("conversation", "typing", "clinic", phone).expect(t, 0, "window restarted")
	if !lookUp[bool](o, `SELECT typing_at IS NOT NULL FROM conversations WHERE phone = $1`, phone) {
		t.Error("the conversation does not know")
	}
}

func TestConversationShow(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.turn("clinic", phone, "oi")
	o.push("clinic", phone, "alô?")
	o.run("conversation", "show", "clinic", "+55 (31) 99999-0001").expect(t, 0, phone, "agent", "1 message", "turn "+id+" is open", "running")
	r := o.run("conversation", "show", "clinic", phone).expect(t, 0)
	if strings.Contains(r.out, "last actions") {
		t.Errorf("somebody did something: %q", r.out)
	}
	o.run("conversation", "suspend", "clinic", phone, "--by", "ana", "--reason", "dúvida sobre o preço").expect(t, 0)
	o.run("conversation", "resume", "clinic", phone, "--by", "rui", "--waiting", "answer").expect(t, 0)
	r = o.run("conversation", "show", "clinic", phone).expect(t, 0, "last actions", "dúvida sobre o preço", "ana")
	if strings.Index(r.out, "rui") > strings.Index(r.out, "ana") {
		t.Errorf("the last action is not the first: %q", r.out)
	}
	var got ledger.Conversation
	o.json(&got, "conversation", "show", "clinic", phone)
	if got.Phone != phone || got.Waiting != 1 || *got.ActiveTurn != id || len(got.Turns) != 1 {
		t.Errorf("got %+v", got)
	}
	o.run("conversation", "show", "clinic", "5531999990009").expect(t, 0, "No conversation", "No turns.")
	o.run("conversation", "show", "nobody", phone).expect(t, 1, "nobody", "fila status")
}

type exportDocument struct {
	Phone        string
	ExportedBy   string `json:"exported_by"`
	Conversation map[string]any
	Waiting      []map[string]any
	Turns        []struct {
		Turn  map[string]any
		Parts []map[string]any
	}
	Receipts, Audit []map[string]any
}

func TestExport(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	id := o.turn("clinic", phone, "oi")
	o.exec(`SELECT fila_reply('clinic', $1::text::bigint, 1, 'Temos 14h', ARRAY['Temos 14h'], false, true, 'instance-1', 30)`, id)
	o.push("clinic", phone, "guardado")
	o.push("other", phone, "de outra clínica")
	o.exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem) VALUES ('553199990001', 'de outro programa')`)
	o.run("conversation", "takeover", "clinic", phone, "--by", "rui").expect(t, 0)
	o.exec(`UPDATE projects SET takeover_messages = 'hold'`)
	o.push("clinic", phone, "espera")

	r := o.run("conversation", "export", "--by", "ana", "clinic", "553199990001").expect(t, 0)
	var got exportDocument
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Phone != phone || got.ExportedBy != "ana" || got.Conversation["contact_name"] != "Maria" {
		t.Errorf("got %+v", got)
	}
	if len(got.Turns) != 1 || len(got.Turns[0].Parts) != 1 || got.Turns[0].Turn["reply"] != "Temos 14h" {
		t.Errorf("turns %+v", got.Turns)
	}
	if len(got.Waiting) != 2 || got.Waiting[0]["mensagem"] != "de outro programa" || len(got.Receipts) != 3 || len(got.Audit) != 1 {
		t.Errorf("waiting %v, receipts %v, audit %v", got.Waiting, got.Receipts, got.Audit)
	}
	if strings.Contains(r.out, "outra clínica") {
		t.Error("another project's text is in it")
	}
	if by := lookUp[string](o, `SELECT actor FROM audit WHERE action = 'export'`); by != "ana" {
		t.Errorf("audit names %q", by)
	}
}

func TestExportOfNothing(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("conversation", "export", "clinic", phone).expect(t, 0, `"turns": []`, `"waiting": []`, `"conversation": null`)
	if n := lookUp[int](o, `SELECT (SELECT count(*) FROM conversations) + (SELECT count(*) FROM audit)`); n != 0 {
		t.Errorf("%d rows were left by the export of a stranger", n)
	}
	o.run("conversation", "export", "nobody", phone).expect(t, 1, "nobody")
}

func TestErase(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.dead("clinic", phone, "oi")
	o.run("conversation", "export", "clinic", phone).expect(t, 0)
	o.run("conversation", "erase", "clinic", phone, "--by", "ana").expect(t, 0, "turns 1,")
	if n := lookUp[int](o, `SELECT (SELECT count(*) FROM turns t WHERE t::text LIKE '%' || $1 || '%') + (SELECT count(*) FROM audit a WHERE a::text LIKE '%' || $1 || '%')`, phone); n != 0 {
		t.Errorf("%d rows still hold the phone", n)
	}
	o.run("conversation", "export", "clinic", phone).expect(t, 0, `"receipts": []`)
}
