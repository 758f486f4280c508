// Package history judges what happened to a service that was hurt on purpose.
//
// A [History] is what everybody around the service saw: who wrote to it, the agent that it asked, the channel that it sent
// through, all on one monotonic clock of the observer; and what the tables say in the end, by the database's clock. The two
// clocks are never compared. [History.Check] holds the invariants of the service against it, in O(n log n).
package history

import "time"

// History is everything that is known of one run.
type History struct {
	// Rules are those of each project, by its name.
	Rules map[string]Rules
	// Lease is how long a turn outlives the last sign of life of its instance.
	Lease time.Duration
	// Settled says that after the last fault everything came to its end in time; Unsettled what did not.
	Settled   bool
	Unsettled string

	Posts   []Post
	Inserts []Insert
	Asks    []Ask
	Sends   []Send
	Outages []Outage

	Turns    []Turn
	Receipts []Receipt
	Waiting  []Waiting
	Steps    []Step
	Audit    []Audit
	// Lost is how often the conservation law was found broken, at any instant of the run.
	Lost int
}

// Rules are what a project promises, as far as it can be configured.
type Rules struct {
	// Debounce and Ceiling bound how early a burst may become a turn.
	Debounce, Ceiling time.Duration
	// MaxMessages closes a burst.
	MaxMessages int
	// Attempts is how many failures of one stage make a turn dead.
	Attempts int
	// Once says that the channel cannot tell a repetition: every call of it has an effect.
	Once bool
}

// Span is the time of one call as its receiver saw it, since the beginning of the run.
type Span struct {
	Invoke, Return time.Duration
}

// Post is one message on its way in once; a repetition is a Post of its own.
type Post struct {
	Span
	Project, Phone, ID, Text string
	// Status is the answer's word for the message, empty where there was no 2xx.
	Status string
}

// Insert is a row that another program committed to the queue's table.
type Insert struct {
	Project, Phone, ID, Text string
}

// Ask is one call of the agent. Its span ends when it was answered, or when the caller hung up on it.
type Ask struct {
	Span
	Project, Phone string
	Turn           int64
	Attempt        int
	// Instance is the process that called.
	Instance string
	// Body is what must be the same on every repetition: all of it but the attempt.
	Body     string
	Messages []Message
	// Replies are what it answered, at once or later; nothing where it answered an error.
	Replies []string
}

// Message is one message as the agent read it.
type Message struct {
	ID, Text string
}

// Send is one call of the channel.
type Send struct {
	Span
	Project, Phone string
	Turn           int64
	Part, Parts    int
	Instance       string
	Body, Text     string
	// Effect says that the patient got the text by this call.
	Effect bool
}

// Outage is a time in which an instance could not keep what it held, or nobody could.
type Outage struct {
	Span
	// Instance is empty where all were hit.
	Instance string
}

// Turn is a row of the ledger in the end.
type Turn struct {
	ID                             int64
	Project, Phone, State, FiredBy string
	// Numbers are the registration numbers of Messages.
	Numbers      []int64
	Messages     []Registered
	Superseded   []int64
	SupersededBy int64
	Stage        string
	// Failures are the stages of its errors.
	Failures []string
	// DrainedAt and FinishedAt are the database's; FinishedAt is zero while the turn is open.
	DrainedAt, FinishedAt time.Time
	Parts                 []Part
}

// Registered is a message as a turn holds it.
type Registered struct {
	ID, Text string
	At       time.Time
}

// Part is one part of a turn's reply.
type Part struct {
	Number int
	State  string
	Text   string
	// IntendedAt is when it last passed the gate, zero if never.
	IntendedAt time.Time
}

// Receipt is what was noted when a message was accepted.
type Receipt struct {
	Number                             int64
	Project, Phone, ID, Status, Reason string
}

// Waiting is a row that is still in the queue.
type Waiting struct {
	Project, Phone, ID string
}

// Step is one change of a turn's row.
type Step struct {
	Turn                   int64
	From, To               string
	FromAttempt, ToAttempt int
	// Leased says that the lease of the row still ran when it was changed.
	Leased bool
}

// Audit is one intervention.
type Audit struct {
	At             time.Time
	Project, Phone string
	Action         string
	// Until is when a takeover ends by itself.
	Until time.Time
}

func (t *Turn) open() bool {
	switch t.State {
	case "done", "superseded", "discarded", "dead":
		return false
	}
	return true
}

// conversation names one patient of one project.
type conversation struct{ project, phone string }
