// Package queue takes messages durably: it gathers what arrives, writes it in shared commits, and answers only after them.
package queue

import (
	"encoding/json"
	"time"
)

// Message is one message on its way into the queue, already validated: no NUL, valid UTF-8, known project.
type Message struct {
	Project string
	// ID is the provider's, "" where it gave none: then nothing is deduplicated.
	ID string
	// Phone is the conversation's key, Address the identifier exactly as it came.
	Phone, Address string
	Text           string
	Kind           string
	// ContactName and SessionID are "" where the message says nothing of them.
	ContactName, SessionID string
	// Media and Metadata are JSON objects or nil.
	Media, Metadata json.RawMessage
	SentAt          *time.Time
	// Ignored is the reason why the message is remembered but not answered, "" for one that is.
	// FromMe as the reason lets the database decide whether it is our own echo or a person.
	Ignored string
}

// FromMe is the reason of a message that the clinic itself wrote.
const FromMe = "from_me"

// Receipt is what became of a message.
type Receipt struct {
	// Status is Queued, Duplicate or Ignored.
	Status string
	// Reason belongs to Ignored.
	Reason string
	// Resent says of a Duplicate that it may have been queued only now, by a commit whose answer was lost with its connection.
	Resent bool
}

// What can become of a message.
const (
	Queued    = "queued"
	Duplicate = "duplicate"
	Ignored   = "ignored"
)
