// Package turn runs turns: from the burst that became one to its end.
//
// A turn is a row. Everything that happens to it is one conditional statement under its attempt, so that this process may
// die between any two lines here, and another one goes on from the row.
package turn

import (
	"encoding/json"
	"errors"
	"time"

	"fila/internal/agent"
	"fila/internal/delivery"
)

// What an unknown outcome of a call leads to.
const (
	Retry     = "retry"     // the same call again, under the same key
	Reconcile = "reconcile" // the receiver is asked what became of it
	Hold      = "hold"      // a person decides
)

// Project is how one project's turns are run.
type Project struct {
	Name  string
	Agent *agent.Client
	// AgentTimeout is also how long an agent that answered 202 has to call back.
	AgentTimeout time.Duration
	// AgentUnknown is Retry, Reconcile or Hold.
	AgentUnknown string
	Channel      delivery.Channel
	// Sends is false where replies are kept and not delivered.
	Sends           bool
	DeliveryUnknown string
	// PartMaxChars is the longest part, in code points.
	PartMaxChars int
	PartDelay    time.Duration
	Backoff      Backoff
	// Fallback says that a dead turn may have a last text for the patient.
	Fallback bool
}

// Work is a turn that this process has leased and may go on with.
type Work struct {
	ID      int64
	Project string
	Phone   string
	// Attempt is the fence: what is written under it is refused once somebody else has begun a higher one.
	Attempt     int
	FiredBy     string
	Address     string
	ContactName *string
	SessionID   string
	// Messages is the JSON array that the agent gets.
	Messages   json.RawMessage
	Count      int
	Text       string
	Superseded []int64
	// Late is how long after the burst fell due it was drained.
	Late time.Duration

	// The rest is only set on a turn that was claimed, not begun.

	// Why is one of the Why constants.
	Why                                      string
	State, Stage                             string
	AgentFailures, DeliveryFailures, Crashes int
	// Reconciling is for how long the outcome has been asked about.
	Reconciling time.Duration
	// Doubtful is the part that was going out when the turn stopped, 0 where none was.
	Doubtful int
}

// Why a turn was claimed.
const (
	WhyBegun      = ""            // it has just been drained
	WhyRetry      = "retry"       // its time to try again has come
	WhyAbandoned  = "abandoned"   // the lease of its instance ran out
	WhyHandedBack = "handed_back" // its instance was shut down
	WhyHeld       = "held"        // its reply was kept while the conversation was suspended
	WhyOverdue    = "overdue"     // the agent did not call back in time
	WhyReconcile  = "reconcile"   // its outcome is asked about
)

// States of a turn that this package looks at.
const (
	stateRunning   = "running"
	stateDiscarded = "discarded"
)

// Stages of a turn, where errors happen.
const (
	stageAgent    = "agent"
	stageDelivery = "delivery"
	stageInstance = "instance"
)

// maxCrashes is how many instances a turn may outlive before it is taken for what kills them.
const maxCrashes = 10

// Reasons for which a running turn is stopped from outside, as causes of its context.
var (
	errLeaseLost   = errors.New("the turn's lease is lost")
	errInterrupted = errors.New("a newer burst interrupts the turn")
	errShutdown    = errors.New("the service shuts down")
)

// Drained is what a drain found at one conversation.
type Drained struct {
	Phone string
	// Verdict is one of the Verdict constants.
	Verdict string
	// Wait is how long until it is worth another look, for Early, Human and HangingUp.
	Wait time.Duration
	// FirstAgo and Waiting are the age of the burst's first message and how many messages wait.
	FirstAgo time.Duration
	Waiting  int
	// Turn is the open turn for Interrupt.
	Turn int64
	// Work is set for Begun.
	Work Work
}

// Held is the verdict on a reply that is kept and not sent yet.
const Held = "held"

// Verdicts of a drain.
const (
	Begun     = "drained"    // a turn has begun
	Early     = "early"      // not due yet
	Empty     = "empty"      // nothing waits
	Open      = "open"       // a turn of the conversation is open
	Interrupt = "interrupt"  // it is open, and may be interrupted now
	HangingUp = "hanging_up" // the call of a discarded turn is not over
	Human     = "human"      // a person has the conversation
	Suspended = "suspended"  // somebody suspended it
	Busy      = "busy"       // somebody is deciding about it this moment
)
