package soak_test

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/soak/history"
)

// readTables adds what the tables say in the end.
func (s *soak) readTables(h *history.History) {
	s.Helper()
	h.Receipts = rows[history.Receipt](s, `
		SELECT id AS number, project, phone, coalesce(message_id, '') AS id, status, coalesce(reason, '') AS reason FROM receipts`)
	h.Waiting = rows[history.Waiting](s, `SELECT projeto AS project, telefone AS phone, id_mensagem AS id FROM fila_mensagens`)
	h.Steps = rows[history.Step](s, `
		SELECT turn_id AS turn, from_state AS from, to_state AS to, from_attempt, to_attempt, leased FROM soak_steps ORDER BY id`)
	h.Audit = rows[history.Audit](s, `
		SELECT at, project, coalesce(phone, '') AS phone, action, coalesce((detail ->> 'until')::timestamptz, 'epoch') AS until FROM audit ORDER BY id`)
	h.Turns = s.readTurns()
}

func rows[T any](s *soak, statement string) []T {
	s.Helper()
	found, err := s.pool.Query(s.Context(), statement)
	if err != nil {
		s.Fatal(err)
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByName[T])
	if err != nil {
		s.Fatal(err)
	}
	return all
}

const turnsStatement = `
	SELECT t.id, t.project, t.phone, t.state, t.fired_by, t.stage, t.message_ids, t.superseded_turns, coalesce(t.superseded_by, 0),
		t.drained_at, coalesce(t.finished_at, 'epoch'), t.messages, ARRAY(SELECT e ->> 'stage' FROM jsonb_array_elements(t.errors) e),
		(SELECT coalesce(jsonb_agg(jsonb_build_object('number', d.part, 'state', d.state, 'text', d.text, 'intendedAt', d.intended_at) ORDER BY d.part), '[]')
			FROM deliveries d WHERE d.turn_id = t.id)
	FROM turns t ORDER BY t.id`

func (s *soak) readTurns() []history.Turn {
	s.Helper()
	found, err := s.pool.Query(s.Context(), turnsStatement)
	if err != nil {
		s.Fatal(err)
	}
	turns, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (t history.Turn, err error) {
		var messages, parts []byte
		err = row.Scan(&t.ID, &t.Project, &t.Phone, &t.State, &t.FiredBy, &t.Stage, &t.Numbers, &t.Superseded, &t.SupersededBy,
			&t.DrainedAt, &t.FinishedAt, &messages, &t.Failures, &parts)
		if err != nil {
			return t, err
		}
		var read []struct {
			ID   string    `json:"id"`
			Text string    `json:"text"`
			At   time.Time `json:"received_at"`
		}
		if err := json.Unmarshal(messages, &read); err != nil {
			return t, err
		}
		for _, m := range read {
			t.Messages = append(t.Messages, history.Registered{ID: m.ID, Text: m.Text, At: m.At})
		}
		return t, json.Unmarshal(parts, &t.Parts)
	})
	if err != nil {
		s.Fatal(err)
	}
	return turns
}
