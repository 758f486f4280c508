// Package delivery sends the parts of a reply to the patient, and cuts replies into parts.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rs/zerolog"

	"fila/internal/call"
)

// Types of delivery that this package has itself.
const (
	TypeHTTP = "http" // posts every part to a URL
	TypeLog  = "log"  // writes a line, without the text, and sends nothing
	TypeNone = "none" // sends nothing
)

// Part is one piece of a reply on its way to the patient.
type Part struct {
	TurnID  int64
	Project string
	Phone   string
	// Address is the patient's identifier exactly as it last came; it is what is written to.
	Address   string
	SessionID string
	// Number counts from 1; 0 is the fallback text of a dead turn.
	Number int
	// Of is how many parts the reply has.
	Of   int
	Text string
}

// Key names the part's effect, the same on every repetition: "184.2", or "184.fallback".
func (p Part) Key() string { return key(p.TurnID, p.Number) }

func key(turnID int64, number int) string {
	if number == 0 {
		return fmt.Sprintf("%d.fallback", turnID)
	}
	return fmt.Sprintf("%d.%d", turnID, number)
}

// Channel is a way to the patient. A channel is safe for concurrent use.
type Channel interface {
	// Send sends one part and returns the id that the provider gave it, "" where it gave none. The error is a *call.Failure.
	Send(ctx context.Context, p Part) (providerID string, err error)
	// Reconcile asks what became of a part whose outcome is unknown. The error is only for the operator: with it, and on
	// channels that cannot be asked, the outcome is call.Unknown.
	Reconcile(ctx context.Context, turnID int64, number int) (Reconciled, error)
}

// Reconciled is what is known afterwards of a part.
type Reconciled struct {
	// Outcome is Done, NotDone, or Unknown: ask again later.
	Outcome call.Outcome
	// ProviderID belongs to Done and may be "".
	ProviderID string
}

// Options choose and describe a channel.
type Options struct {
	// Type is TypeHTTP, TypeLog or TypeNone.
	Type string
	// Call says where TypeHTTP posts to and how.
	Call call.Options
	// ReconcileURL answers what became of a part. Empty: nobody can be asked.
	ReconcileURL string
	// Logger takes the lines of TypeLog.
	Logger zerolog.Logger
}

// New makes the channel of the given type. Nothing is dialled yet.
func New(o Options) (Channel, error) {
	switch o.Type {
	case TypeHTTP:
		return newHook(o)
	case TypeLog:
		return journal{o.Logger}, nil
	case TypeNone:
		return silence{}, nil
	default:
		return nil, fmt.Errorf("delivery type %q: unknown; give %s, %s or %s", o.Type, TypeHTTP, TypeLog, TypeNone)
	}
}

var errCannotAsk = errors.New("delivery cannot be asked what became of a part; configure a reconcile_url or choose another on_unknown")

type silence struct{}

func (silence) Send(context.Context, Part) (string, error) { return "", nil }

func (silence) Reconcile(context.Context, int64, int) (Reconciled, error) {
	return Reconciled{}, errCannotAsk
}

type journal struct{ log zerolog.Logger }

func (j journal) Send(_ context.Context, p Part) (string, error) {
	j.log.Info().Str("project", p.Project).Str("turn_id", strconv.FormatInt(p.TurnID, 10)).
		Int("part", p.Number).Int("parts", p.Of).Int("chars", chars(p.Text)).Msg("delivery: part logged, not sent")
	return "", nil
}

func (j journal) Reconcile(ctx context.Context, turnID int64, number int) (Reconciled, error) {
	return silence{}.Reconcile(ctx, turnID, number)
}
