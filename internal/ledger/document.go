package ledger

import (
	"encoding/json"
	"time"
)

// Turn is one burst and what became of it. Moments are the database's, in UTC.
type Turn struct {
	// ID is a decimal number that grows with time.
	ID       string    `json:"id"`
	Project  string    `json:"project"`
	Phone    string    `json:"phone"`
	State    string    `json:"state"`
	FiredBy  string    `json:"fired_by"`
	Messages []Message `json:"messages"`
	// Text is that of all messages, joined as the project wants it.
	Text  string  `json:"text"`
	Reply *string `json:"reply"`
	// Parts are what goes out, in order; part 0 is the fallback text of a dead turn.
	Parts []Part `json:"parts"`
	// Attempt counts from 1 and grows whenever the turn is begun again, for whatever reason.
	Attempt    int        `json:"attempt"`
	FirstAt    time.Time  `json:"first_at"`
	DueAt      time.Time  `json:"due_at"`
	DrainedAt  time.Time  `json:"drained_at"`
	RepliedAt  *time.Time `json:"replied_at"`
	FinishedAt *time.Time `json:"finished_at"`
	// KeptUntil is when a dead turn is deleted for its age; nil for all others.
	KeptUntil     *time.Time `json:"kept_until,omitempty"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	SupersededBy  *string    `json:"superseded_by"`
	// Reason says why it stands where it stands, where that is not the usual course.
	Reason   *string `json:"reason"`
	Errors   []Error `json:"errors"`
	Instance *string `json:"instance"`
}

// States are those of a turn, in the order of its life.
var States = []string{"running", "retrying", "replied", "sending", "unknown", "done", "superseded", "discarded", "dead"}

// Page is a list of turns, newest first.
type Page struct {
	Turns []Turn `json:"turns"`
	// Before is the Filter's for the next page; nil on the last.
	Before *string `json:"before"`
}

// Message is one message of a turn, as the agent gets it.
type Message struct {
	ID   *string `json:"id"`
	Text string  `json:"text"`
	Kind string  `json:"kind"`
	// Media is an object or null.
	Media json.RawMessage `json:"media"`
	// ReceivedAt strictly increases within a turn.
	ReceivedAt time.Time       `json:"received_at"`
	SentAt     *time.Time      `json:"sent_at"`
	Metadata   json.RawMessage `json:"metadata"`
}

// Part is one message to the patient.
type Part struct {
	Part  int    `json:"part"`
	Text  string `json:"text"`
	State string `json:"state"`
	// ProviderID is the name that the provider gave it.
	ProviderID *string `json:"provider_id"`
	Attempts   int     `json:"attempts"`
}

// Error is one thing that went wrong with a turn.
type Error struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	// Stage is agent, delivery or instance.
	Stage string `json:"stage"`
	Error string `json:"error"`
}

// Conversation is one phone of one project: who has the floor, what waits, and the last turns.
type Conversation struct {
	// Phone is the conversation's key, in whatever form it was asked for.
	Phone string `json:"phone"`
	// Mode is agent, human or suspended; Until is when a human's time ends.
	Mode    string     `json:"mode"`
	Until   *time.Time `json:"until"`
	Waiting int        `json:"waiting"`
	// FirstAt and LastAt are when the first and the last waiting message came, DueAt when they fall due.
	FirstAt *time.Time `json:"first_at"`
	LastAt  *time.Time `json:"last_at"`
	DueAt   *time.Time `json:"due_at"`
	// ActiveTurn is the id of the turn that is not at its end.
	ActiveTurn *string `json:"active_turn"`
	// Turns are the last ConversationTurns, newest first.
	Turns []Turn `json:"turns"`
}

// Overview is one project's row of the handover.
type Overview struct {
	Project string `json:"project"`
	// Waiting counts messages, WaitingConversations those who wrote them.
	Waiting              int64    `json:"waiting"`
	WaitingConversations int64    `json:"waiting_conversations"`
	OldestWaitSeconds    *float64 `json:"oldest_wait_seconds"`
	// ActiveTurns are running, replied or sending.
	ActiveTurns int64 `json:"active_turns"`
	Retrying    int64 `json:"retrying"`
	Unknown     int64 `json:"unknown"`
	// Suspended and Human count conversations.
	Suspended int64 `json:"suspended"`
	// SuspendedByDead are those of Suspended that a dead turn suspended (on_dead: suspend).
	SuspendedByDead int64 `json:"suspended_by_dead"`
	Human           int64 `json:"human"`
	Dead            int64 `json:"dead"`
	// LatenessP99Seconds is from due to drained, over the last thousand turns.
	LatenessP99Seconds *float64 `json:"lateness_p99_seconds"`
}
