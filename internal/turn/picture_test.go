package turn_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// picture is everything that the database holds of a case.
type picture struct {
	Turns    []turnRow    `json:"turns"`
	Waiting  []waitingRow `json:"waiting"`
	Modes    []modeRow    `json:"modes"`
	Receipts []receiptRow `json:"receipts"`
	Lost     int          `json:"lost"`
	Audited  int          `json:"audited"`
	Orphans  int          `json:"orphans"`
	// Hanging are the digests of the phones of which a call may still be running although its turn has ended.
	Hanging []string `json:"hanging"`
}

type turnRow struct {
	ID         int64     `json:"id"`
	Phone      string    `json:"phone"`
	State      string    `json:"state"`
	Stage      string    `json:"stage"`
	Open       bool      `json:"open"`
	Attempt    int       `json:"attempt"`
	Numbers    []int64   `json:"numbers"`
	Texts      []string  `json:"texts"`
	Reply      *string   `json:"reply"`
	Answered   bool      `json:"answered"`
	Confirmed  bool      `json:"confirmed"`
	Awaited    bool      `json:"awaited"`
	Leased     bool      `json:"leased"`
	Superseded []int64   `json:"superseded"`
	Parts      []partRow `json:"parts"`
	// Rest is all that a refused writer must not touch. What came of the last word is none of it: that is said once in a turn's life,
	// by whoever buried it, and stays true when a person has begun the turn again meanwhile. Neither is what came of a part that was on its
	// way when its turn was discarded.
	Rest json.RawMessage `json:"rest"`
}

type partRow struct {
	Part     int    `json:"part"`
	Text     string `json:"text"`
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
}

type waitingRow struct {
	Phone  string `json:"phone"`
	Number int64  `json:"number"`
	Text   string `json:"text"`
}

type modeRow struct {
	Phone string `json:"phone"`
	Mode  string `json:"mode"`
	// Until is in seconds from now.
	Until *float64 `json:"until"`
}

type receiptRow struct {
	Number  int64   `json:"number"`
	Message *string `json:"message"`
	Status  string  `json:"status"`
	Reason  *string `json:"reason"`
}

// makePicture keeps the statement where its plan is kept too: planning it takes longer than running it.
const makePicture = `CREATE FUNCTION take_picture() RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN (
SELECT jsonb_build_object(
	'turns', (
		SELECT coalesce(jsonb_agg(jsonb_build_object(
			'id', t.id, 'phone', t.phone, 'state', t.state, 'stage', t.stage, 'open', t.open, 'attempt', t.attempt, 'numbers', t.message_ids,
			'texts', (SELECT jsonb_agg(e.m -> 'text' ORDER BY e.place) FROM jsonb_array_elements(t.messages) WITH ORDINALITY AS e (m, place)),
			'reply', t.reply, 'answered', t.replied_at IS NOT NULL, 'confirmed', t.confirmed_at IS NOT NULL, 'awaited', t.reply_until IS NOT NULL,
			'leased', coalesce(t.lease_until > clock_timestamp(), false), 'superseded', t.superseded_turns,
			'parts', coalesce(d.parts, '[]'),
			'rest', jsonb_build_array(t.state, t.stage, t.attempt, t.reply, t.reason, t.agent_failures, t.delivery_failures, t.errors,
				t.replied_at, t.finished_at, t.confirmed_at, t.next_attempt_at, t.reply_until, d.reply)
		) ORDER BY t.id), '[]')
		FROM turns t
		LEFT JOIN LATERAL (
			SELECT
				jsonb_agg(p.part ORDER BY p.number) AS parts,
				jsonb_agg(p.part || CASE WHEN t.state = 'discarded' AND p.part ->> 'state' = 'sent' THEN '{"state": "unknown"}' ELSE '{}' END::jsonb ORDER BY p.number)
					FILTER (WHERE p.number > 0) AS reply
			FROM (
				SELECT d.part AS number, jsonb_build_object('part', d.part, 'text', d.text, 'state', d.state, 'attempts', d.attempts) AS part
				FROM deliveries d WHERE d.turn_id = t.id
			) p
		) d ON true),
	'waiting', (
		SELECT coalesce(jsonb_agg(jsonb_build_object('phone', q.telefone, 'number', q.id, 'text', q.mensagem) ORDER BY q.id), '[]')
		FROM fila_mensagens q WHERE q.registered),
	'modes', (
		SELECT coalesce(jsonb_agg(jsonb_build_object(
			'phone', c.phone, 'mode', fila_mode(c.mode, c.until), 'until', extract(epoch FROM c.until - clock_timestamp()))), '[]')
		FROM conversations c),
	'receipts', (
		SELECT coalesce(jsonb_agg(jsonb_build_object('number', r.id, 'message', r.message_id, 'status', r.status, 'reason', r.reason)), '[]')
		FROM receipts r),
	'lost', (SELECT count(*) FROM fila_lost),
	'hanging', (SELECT coalesce(jsonb_agg(encode(e.digest, 'hex')), '[]') FROM hanging_calls e WHERE e.lease_until > clock_timestamp()),
	'audited', (SELECT count(*) FROM audit),
	'orphans', (SELECT count(*) FROM deliveries d WHERE NOT EXISTS (SELECT FROM turns t WHERE t.id = d.turn_id))
)); END $$`

// look takes a picture of the database.
func (m *machine) look() *picture {
	var raw []byte
	if err := m.pool.QueryRow(m.ctx, `SELECT take_picture()`).Scan(&raw); err != nil {
		m.Fatalf("look at the database: %v", err)
	}
	p := &picture{}
	if err := json.Unmarshal(raw, p); err != nil {
		m.Fatalf("read the picture: %v", err)
	}
	return p
}

func (p *picture) turn(id int64) *turnRow {
	for i := range p.Turns {
		if p.Turns[i].ID == id {
			return &p.Turns[i]
		}
	}
	return nil
}

func (p *picture) openTurn(phone string) *turnRow {
	for i := range p.Turns {
		if p.Turns[i].Open && p.Turns[i].Phone == phone {
			return &p.Turns[i]
		}
	}
	return nil
}

// hangsUp tells whether the call of an ended turn of the conversation may still be running.
func (p *picture) hangsUp(phone string) bool {
	return slices.Contains(p.Hanging, fmt.Sprintf("%x", sha256.Sum256([]byte(phone))))
}

// answers tells whether this attempt of the turn is with the agent.
func (p *picture) answers(phone string, id int64, attempt int) bool {
	t := p.openTurn(phone)
	return t != nil && t.ID == id && t.Attempt == attempt && t.Stage == "agent" && t.State == "running"
}

func (p *picture) in(states ...string) (found []*turnRow) {
	for i := range p.Turns {
		if slices.Contains(states, p.Turns[i].State) {
			found = append(found, &p.Turns[i])
		}
	}
	return found
}

func (p *picture) mode(phone string) (mode string, until *float64) {
	for _, c := range p.Modes {
		if c.Phone == phone {
			return c.Mode, c.Until
		}
	}
	return "agent", nil
}

func (p *picture) waiting(phone string) (texts []string) {
	for _, w := range p.Waiting {
		if w.Phone == phone {
			texts = append(texts, w.Text)
		}
	}
	return texts
}

// part is the nth part of the turn, nil where there is none.
func (t *turnRow) part(n int) *partRow {
	for i := range t.Parts {
		if t.Parts[i].Part == n {
			return &t.Parts[i]
		}
	}
	return nil
}

// doubtful is the part that may or may not be out, 0 where there is none.
func (t *turnRow) doubtful() int {
	for _, p := range t.Parts {
		if p.Part > 0 && (p.State == "unknown" || p.State == "sending") {
			return p.Part
		}
	}
	return 0
}
