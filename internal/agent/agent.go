// Package agent asks a project's agent to answer one turn, and says what its answer means.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"fila/internal/call"
)

// Options say where the agent is and how it is called.
type Options struct {
	Call call.Options
	// ReconcileURL answers what became of a turn. Empty: the agent cannot be asked.
	ReconcileURL string
}

// Request is one turn as the agent gets it.
type Request struct {
	TurnID      int64
	Project     string
	Phone       string
	SessionID   string
	ContactName *string
	Text        string
	// Attempt counts from 1.
	Attempt int
	FiredBy string
	// Messages is a JSON array; nil is sent as an empty one.
	Messages json.RawMessage
	// SupersededTurns are the turns whose messages this one took over.
	SupersededTurns []int64
}

// Answer is what the agent wants done.
type Answer struct {
	// Replies go to the patient in this order. None is empty or white space alone; there may be none at all.
	Replies []string
	// Handoff gives the conversation to a human once the replies are sent.
	Handoff bool
	// Later says that the answer will come in a call of the agent's own.
	Later bool
}

// Reconciled is what the agent says about an earlier turn.
type Reconciled struct {
	// Outcome is Done (Answer is the turn's), NotDone, or Unknown: ask again later.
	Outcome call.Outcome
	Answer  Answer
}

// Client asks one project's agent. It is safe for concurrent use.
type Client struct {
	ask       *call.Client
	reconcile *call.Client
}

// New checks the options and makes a client.
func New(o Options) (*Client, error) {
	ask, err := call.New(o.Call)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	reconcile, err := call.NewQuestion(o.Call, o.ReconcileURL)
	if err != nil {
		return nil, fmt.Errorf("agent reconcile: %w", err)
	}
	return &Client{ask: ask, reconcile: reconcile}, nil
}

// Ask sends the turn, with its id as the Idempotency-Key, and waits for the answer. The error is a *call.Failure.
func (c *Client) Ask(ctx context.Context, r Request) (Answer, error) {
	body, err := encode(r)
	if err != nil {
		return Answer{}, &call.Failure{Outcome: call.Permanent, Reason: "the turn's messages are not valid JSON"}
	}
	header := http.Header{"X-Fila-Attempt": {strconv.Itoa(r.Attempt)}}
	response, err := c.ask.Post(ctx, strconv.FormatInt(r.TurnID, 10), header, body)
	if err != nil {
		return Answer{}, err
	}
	return read(response)
}

// Reconcile asks what became of a turn whose outcome is unknown. The error, a *call.Failure, is only for the operator: with
// it the outcome is Unknown.
func (c *Client) Reconcile(ctx context.Context, turnID int64) (Reconciled, error) {
	if c.reconcile == nil {
		return Reconciled{}, errors.New("agent has no reconcile_url; configure one or choose another on_unknown")
	}
	id := strconv.FormatInt(turnID, 10)
	response, err := c.reconcile.Get(ctx, id, url.Values{"turn_id": {id}})
	if err != nil {
		return Reconciled{}, err
	}
	switch response.Status {
	case http.StatusOK:
		answer, err := read(response)
		if err != nil {
			return Reconciled{}, &call.Failure{Outcome: call.Unknown, Reason: "reconcile answered 200 with a body that is not an agent's answer"}
		}
		return Reconciled{Outcome: call.Done, Answer: answer}, nil
	case http.StatusNotFound:
		return Reconciled{Outcome: call.NotDone}, nil
	case http.StatusAccepted:
		return Reconciled{}, nil
	default:
		return Reconciled{}, response.Failure(call.Unknown, "reconcile")
	}
}

func encode(r Request) ([]byte, error) {
	superseded := make([]string, len(r.SupersededTurns))
	for i, id := range r.SupersededTurns {
		superseded[i] = strconv.FormatInt(id, 10)
	}
	messages := r.Messages
	if messages == nil {
		messages = json.RawMessage("[]")
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // patients' texts reach the agent's logs as they were typed
	err := encoder.Encode(struct {
		TurnID          int64           `json:"turn_id,string"`
		Project         string          `json:"project"`
		Phone           string          `json:"phone"`
		SessionID       string          `json:"session_id"`
		ContactName     *string         `json:"contact_name"`
		Text            string          `json:"text"`
		Attempt         int             `json:"attempt"`
		FiredBy         string          `json:"fired_by"`
		Messages        json.RawMessage `json:"messages"`
		SupersededTurns []string        `json:"superseded_turns"`
	}{r.TurnID, r.Project, r.Phone, r.SessionID, r.ContactName, r.Text, r.Attempt, r.FiredBy, messages, superseded})
	if err != nil {
		return nil, fmt.Errorf("encode turn: %w", err)
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}
