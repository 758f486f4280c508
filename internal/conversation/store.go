package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/postgres"
	statement "fila/sql"
)

var (
	takeoverStatement = statement.Named("action_takeover")
	releaseStatement  = statement.Named("action_release")
	suspendStatement  = statement.Named("action_suspend")
	resumeStatement   = statement.Named("action_resume")
	typingStatement   = statement.Named("action_typing")
	flushStatement    = statement.Named("action_flush")
	eraseStatement    = statement.Named("action_erase")
	confirmStatement  = statement.Named("action_confirm")
	redriveStatement  = statement.Named("action_redrive")
	discardStatement  = statement.Named("action_discard")
	resolveStatement  = statement.Named("action_resolve")
)

const (
	// An action that waits longer than this for its conversation is given up by the server.
	lockTimeout      = 2 * time.Second
	statementTimeout = 3 * time.Second
	// The client's own limit lies behind the server's, so that an action reported as failed is not done a moment later.
	callTimeout = statementTimeout + time.Second
)

// Store carries out people's actions. Each is one transaction that leaves its audit row; the errors are the database's, to be
// told apart by postgres.Classify: Refused has a sentence for the person who asked.
type Store struct{ pool *postgres.Pool }

// NewStore makes a store on this pool.
func NewStore(pool *postgres.Pool) *Store { return &Store{pool: pool} }

// Done is an action that was carried out.
type Done struct {
	// Status says how things stand now, in a word or two.
	Status string
	// Phone is the key of the conversation that may have work now.
	Phone string
}

// Takeover gives the conversation to a person, for the project's usual time where minutes is nil. reason may be empty.
func (s *Store) Takeover(ctx context.Context, project, phone string, minutes *float64, by, reason string) (Done, error) {
	return s.act(ctx, "take over", takeoverStatement, project, phone, minutes, by, given(reason))
}

// Release gives the conversation back to the agent.
func (s *Store) Release(ctx context.Context, project, phone, by string) (Done, error) {
	return s.act(ctx, "release", releaseStatement, project, phone, by)
}

// Suspend lets messages wait until Resume.
func (s *Store) Suspend(ctx context.Context, project, phone, by, reason string) (Done, error) {
	return s.act(ctx, "suspend", suspendStatement, project, phone, by, reason)
}

// Resume ends a suspension; waiting, answer or discard, says what becomes of the messages.
func (s *Store) Resume(ctx context.Context, project, phone, waiting, by string) (Done, error) {
	return s.act(ctx, "resume", resumeStatement, project, phone, given(waiting), by)
}

// Typing starts the window again, if anything waits in it.
func (s *Store) Typing(ctx context.Context, project, phone string) (Done, error) {
	return s.act(ctx, "typing", typingStatement, project, phone)
}

// Flush makes what waits due now. by may be empty.
func (s *Store) Flush(ctx context.Context, project, phone, by string) (Done, error) {
	return s.act(ctx, "flush", flushStatement, project, phone, given(by))
}

// Erased counts the rows that an erasure removed.
type Erased struct {
	Waiting    int `json:"waiting"`
	Turns      int `json:"turns"`
	Deliveries int `json:"deliveries"`
	Receipts   int `json:"receipts"`
}

// Erase forgets a patient. What was in flight sends nothing more, and a late repetition is known but not stored.
func (s *Store) Erase(ctx context.Context, project, phone, by string) (Erased, error) {
	var counts Erased
	done, err := s.act(ctx, "erase", eraseStatement, project, phone, by)
	if err != nil {
		return counts, err
	}
	if err := json.Unmarshal([]byte(done.Status), &counts); err != nil {
		return counts, fmt.Errorf("erase: counts not understood: %w", err)
	}
	return counts, nil
}

// Confirm asks for an effect that can't be undone. Done's status is proceed, superseded, human or stale. attempt is nil for an
// agent that named none.
func (s *Store) Confirm(ctx context.Context, project string, turn int64, attempt *int) (Done, error) {
	return s.act(ctx, "confirm", confirmStatement, given(project), turn, attempt)
}

// Redrive begins a dead turn again. With an empty project the turn may be any project's; force allows it although a later turn
// of the conversation was answered.
func (s *Store) Redrive(ctx context.Context, project string, turn int64, by, reason string, force bool) (Done, error) {
	return s.act(ctx, "redrive", redriveStatement, given(project), turn, by, reason, force)
}

// Discard settles a turn without an answer. With an empty project the turn may be any project's.
func (s *Store) Discard(ctx context.Context, project string, turn int64, by, reason string) (Done, error) {
	return s.act(ctx, "discard", discardStatement, given(project), turn, by, reason)
}

// Resolve says how an unknown outcome turned out, done or not_done. With an empty project the turn may be any project's.
func (s *Store) Resolve(ctx context.Context, project string, turn int64, outcome, by, reason string) (Done, error) {
	return s.act(ctx, "resolve", resolveStatement, given(project), turn, given(outcome), by, reason)
}

// act is one round trip and one transaction.
func (s *Store) act(ctx context.Context, what, sql string, arguments ...any) (Done, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var status, phone *string
	round := &pgx.Batch{}
	postgres.Limit(round, statementTimeout, lockTimeout)
	round.Queue(sql, arguments...).QueryRow(func(row pgx.Row) error { return row.Scan(&status, &phone) })
	if err := s.pool.SendBatch(ctx, round).Close(); err != nil {
		return Done{}, fmt.Errorf("%s: %w", what, err)
	}
	if status == nil {
		return Done{}, fmt.Errorf("%s: %w", what, errNoStatus)
	}
	done := Done{Status: *status}
	if phone != nil {
		done.Phone = *phone
	}
	return done, nil
}

var errNoStatus = errors.New("the database answered without a status")

// given is nil for the empty string, which stands for "not given".
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
