package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"fila/internal/call"
)

// maxProviderID is in bytes; what is longer is no id, and would not fit an index either.
const maxProviderID = 512

// hook posts parts to a URL of the project's own.
type hook struct {
	send      *call.Client
	reconcile *call.Client
}

func newHook(o Options) (*hook, error) {
	send, err := call.New(o.Call)
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	reconcile, err := call.NewQuestion(o.Call, o.ReconcileURL)
	if err != nil {
		return nil, fmt.Errorf("delivery reconcile: %w", err)
	}
	return &hook{send: send, reconcile: reconcile}, nil
}

// Send implements Channel. Any 2xx is delivered, whatever its body.
func (h *hook) Send(ctx context.Context, p Part) (string, error) {
	body, err := encode(p)
	if err != nil {
		return "", &call.Failure{Outcome: call.Permanent, Reason: "the part cannot be written as JSON"}
	}
	response, err := h.send.Post(ctx, p.Key(), nil, body)
	if err != nil {
		return "", err
	}
	if outcome := judge(response.Status); outcome != call.Done {
		return "", response.Failure(outcome, "delivery")
	}
	return providerID(response.Body), nil
}

// Reconcile implements Channel.
func (h *hook) Reconcile(ctx context.Context, turnID int64, number int) (Reconciled, error) {
	if h.reconcile == nil {
		return Reconciled{}, errCannotAsk
	}
	query := url.Values{"turn_id": {strconv.FormatInt(turnID, 10)}, "part": {strconv.Itoa(number)}}
	response, err := h.reconcile.Get(ctx, key(turnID, number), query)
	if err != nil {
		return Reconciled{}, err
	}
	switch response.Status {
	case http.StatusOK:
		return Reconciled{Outcome: call.Done, ProviderID: providerID(response.Body)}, nil
	case http.StatusNotFound:
		return Reconciled{Outcome: call.NotDone}, nil
	case http.StatusAccepted:
		return Reconciled{}, nil
	default:
		return Reconciled{}, response.Failure(call.Unknown, "reconcile")
	}
}

func judge(status int) call.Outcome {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return call.NotDone
	}
	switch status / 100 {
	case 2:
		return call.Done
	case 5:
		return call.NotDone
	default:
		return call.Permanent
	}
}

// providerID finds the optional "id", a string or a number. Whatever else the body is, it holds no id: the part was
// delivered all the same.
func providerID(body []byte) string {
	var keys map[string]json.RawMessage
	if json.Unmarshal(body, &keys) != nil {
		return ""
	}
	var id string
	if raw := keys["id"]; json.Unmarshal(raw, &id) != nil {
		var number json.Number
		if json.Unmarshal(raw, &number) != nil {
			return ""
		}
		id = number.String()
	}
	id = strings.ReplaceAll(id, "\x00", "")
	if len(id) > maxProviderID {
		return ""
	}
	return id
}

func encode(p Part) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		TurnID    int64  `json:"turn_id,string"`
		Project   string `json:"project"`
		Phone     string `json:"phone"`
		Address   string `json:"address"`
		Part      int    `json:"part"`
		Parts     int    `json:"parts"`
		Text      string `json:"text"`
		SessionID string `json:"session_id"`
	}{p.TurnID, p.Project, p.Phone, p.Address, p.Number, p.Of, p.Text, p.SessionID})
	if err != nil {
		return nil, fmt.Errorf("encode part: %w", err)
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}
