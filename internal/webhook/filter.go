package webhook

import (
	"slices"
	"time"

	"fila/internal/conversation"
	"fila/internal/queue"
)

// Filters say which messages are remembered but not answered.
type Filters struct {
	// Groups lets messages of groups in; broadcasts and newsletters never are.
	Groups bool
	// AllowedTeams lets in only these; empty lets in all.
	AllowedTeams    []string
	IgnoredStatuses []string
	// MaxAge is the oldest a message may be when it arrives, by its sender's clock; 0 lets in all.
	MaxAge time.Duration
}

// Reasons why a message is ignored, beside those of package conversation and queue.FromMe.
const (
	reasonTeam   = "team"
	reasonStatus = "status"
	reasonTooOld = "too_old"
)

// reason is "" for a message that is answered. What the clinic wrote itself comes behind the identifier and the age: neither a
// line in a group nor a history that is played again means that a person has taken over.
func (f Filters) reason(in *incoming, m queue.Message, now time.Time) string {
	many := conversation.Ignored(m.Address)
	switch {
	case many != "" && (many != conversation.Group || !f.Groups):
		return many
	case m.SentAt != nil && f.MaxAge > 0 && now.Sub(*m.SentAt) > f.MaxAge:
		return reasonTooOld
	case in.FromMe:
		return queue.FromMe
	case len(f.AllowedTeams) > 0 && !slices.Contains(f.AllowedTeams, in.Team):
		return reasonTeam
	case in.Status != "" && slices.Contains(f.IgnoredStatuses, in.Status):
		return reasonStatus
	}
	return ""
}
