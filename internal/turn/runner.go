package turn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/agent"
	"fila/internal/call"
	"fila/internal/delivery"
	"fila/internal/postgres"
)

// Observer is told what happens to turns. Its functions must not block.
type Observer struct {
	// Late is told how long after its due time a new turn's first call began.
	Late func(project string, late time.Duration)
	// AgentCalled and DeliveryCalled are told of every call and its outcome.
	AgentCalled    func(project, outcome string, took time.Duration)
	DeliveryCalled func(project, outcome string, took time.Duration)
	// Ended is told the state that a turn ended in.
	Ended func(project, state string)
	// Retry is told that a turn of the project may be claimed again after the delay.
	Retry func(project string, delay time.Duration)
}

// Runner takes turns from where they stand to their end, or to where they wait for something.
type Runner struct {
	store   *Store
	keeper  *Keeper
	observe Observer
	log     zerolog.Logger
	// point, where it is set, is told of every place at which this process may die. Only tests set it.
	point func(*Work, string)
}

// NewRunner makes a runner. Every function of the observer must be set.
func NewRunner(store *Store, keeper *Keeper, observe Observer, log zerolog.Logger) *Runner {
	return &Runner{store: store, keeper: keeper, observe: observe, log: log}
}

// run is one turn on its way.
type run struct {
	*Runner
	project *Project
	work    *Work
	began   time.Time
	// waits is false where the turn's end found its conversation empty.
	waits bool
	// ctx ends with a cause when this process must let go of the turn.
	ctx context.Context
	// storing outlives ctx for a moment: what is known of a call's outcome is worth writing down, and the fence protects.
	storing context.Context
}

// Run runs the turn until it ends or waits, and tells whether anything may be waiting in its conversation then. leased is when its
// lease was asked for, on the monotonic clock.
func (r *Runner) Run(ctx context.Context, p *Project, w Work, leased time.Time) (waits bool) {
	if w.State == stateDiscarded {
		(&run{Runner: r, work: &w, began: time.Now()}).tell(stateDiscarded)
		return true
	}
	kept, release := r.keeper.keep(ctx, w.ID, w.Attempt, leased)
	defer release()
	one := &run{Runner: r, project: p, work: &w, began: time.Now(), waits: true, ctx: kept, storing: context.WithoutCancel(ctx)}
	one.pass("begin")
	one.enter() //nolint:contextcheck // The run carries two contexts of its own, and says of each what it is for.
	return one.waits
}

// pass tells where the run stands.
func (r *run) pass(point string) {
	if r.point != nil {
		r.point(r.work, point)
	}
}

// enter goes on from where the turn stands.
func (r *run) enter() {
	w := r.work
	interrupted := w.Why == WhyAbandoned || w.Why == WhyHandedBack
	switch {
	case w.Why == WhyReconcile:
		r.reconcile()
	case w.Why == WhyOverdue:
		r.unknown(failure{stage: stageAgent, reason: "the agent answered 202 and did not call back in time"}, 0)
	case w.Crashes >= maxCrashes:
		r.record(failure{stage: stageInstance, fate: fateDead, reason: fmt.Sprintf("%d instances died while they ran this turn", maxCrashes)})
	case w.Stage == stageAgent && interrupted && r.project.AgentUnknown != Retry:
		r.unknown(failure{stage: stageAgent, reason: "the instance stopped while the agent was being asked"}, 0)
	case w.Stage == stageAgent:
		r.ask()
	case interrupted && w.Doubtful > 0:
		r.unknown(failure{stage: stageDelivery, part: &w.Doubtful, reason: "the instance stopped while the part was going out"}, 0)
	default:
		r.resume()
	}
}

// ask calls the agent. No connection of the database is held while it thinks.
func (r *run) ask() {
	w := r.work
	if w.Why == WhyBegun {
		r.observe.Late(w.Project, w.Late+time.Since(r.began))
	}
	r.pass("before ask")
	began := time.Now()
	answer, err := r.project.Agent.Ask(r.calling(), agent.Request{
		TurnID: w.ID, Project: w.Project, Phone: w.Phone, SessionID: w.SessionID, ContactName: w.ContactName, Text: w.Text,
		Attempt: w.Attempt, FiredBy: w.FiredBy, Messages: w.Messages, SupersededTurns: w.Superseded,
	})
	r.pass("after ask")
	if err != nil && r.stopped(err) {
		return
	}
	r.observe.AgentCalled(w.Project, call.OutcomeOf(err).String(), time.Since(began))
	switch {
	case err != nil:
		r.failed(failure{stage: stageAgent}, err)
	case answer.Later:
		r.await()
	default:
		r.reply(answer)
	}
}

// calling is the context of a call that acts. Whether the turn is still ours is looked at now, and once more when the
// connection stands: in between lies as long as the receiver's network takes, and a process may be frozen at any time.
func (r *run) calling() context.Context {
	r.keeper.check(r.work.ID)
	return call.Before(r.ctx, func() error {
		r.keeper.check(r.work.ID)
		return r.ctx.Err()
	})
}

// stopped deals with a call that this process hung up on itself.
func (r *run) stopped(err error) bool {
	if !errors.Is(err, context.Canceled) || r.ctx.Err() == nil {
		return false
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, errInterrupted):
		r.interrupted()
	case call.OutcomeOf(err) == call.NotDone:
		r.unsent(failure{stage: stageAgent})
	default:
		r.leave()
	}
	return true
}

// interrupted gives a turn back whose call was hung up on for a newer burst. What the call did is left open, as that rule wants.
func (r *run) interrupted() {
	verdict, err := stored(r, "interrupted", func(ctx context.Context) (string, error) { return r.store.interrupted(ctx, r.work) })
	switch {
	case err != nil:
	case verdict == fateRetry:
		r.observe.Retry(r.work.Project, 0)
	default:
		r.ended(verdict)
	}
}

// leave gives up a turn that this process was told to stop.
func (r *run) leave() {
	if !errors.Is(context.Cause(r.ctx), errLeaseLost) {
		r.handBack()
		return
	}
	r.letGo()
	r.log.Warn().Int64("turn", r.work.ID).Int("attempt", r.work.Attempt).Msg("turn let go: its lease is lost")
}

// unsent gives the turn back after a call that this process stopped before anything of it left: nothing is in doubt, and
// no attempt is used up.
func (r *run) unsent(f failure) {
	f.fate, f.reason = fateRetry, "the call was stopped before it left"
	r.record(f)
}

// letGo says that the call is over of a turn that somebody else has, or that has ended: its conversation may be waiting for
// that, or the reply with which the agent called back meanwhile.
func (r *run) letGo() {
	_, err := stored(r, "hung up", func(ctx context.Context) (struct{}, error) { return struct{}{}, r.store.hungUp(ctx, r.work) })
	if err == nil {
		r.observe.Retry(r.work.Project, 0)
	}
}

func (r *run) handBack() {
	_, _ = stored(r, "hand back", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.store.handBack(ctx, []int64{r.work.ID}, []int{r.work.Attempt})
	})
}

// await lets go of a turn whose agent will call back.
func (r *run) await() {
	timeout := r.project.AgentTimeout
	verdict, err := stored(r, "await reply", func(ctx context.Context) (string, error) { return r.store.awaitReply(ctx, r.work, timeout) })
	switch {
	case err != nil:
		return
	case verdict == "awaited":
		r.observe.Retry(r.work.Project, timeout)
	case verdict == stateDiscarded, verdict == "stale":
		r.ended(verdict)
	}
}

// reply stores the answer, passes the gate, and delivers.
func (r *run) reply(answer agent.Answer) {
	parts := r.project.parts(answer)
	verdict, err := stored(r, "reply", func(ctx context.Context) (string, error) {
		return r.store.replied(ctx, r.work, Reply{Text: text(answer), Parts: parts, Handoff: answer.Handoff, Send: r.ctx.Err() == nil})
	})
	if err != nil {
		return
	}
	if verdict == "send" {
		r.deliver(numbered(parts), 0, true)
		return
	}
	r.ended(verdict)
}

// Kept is the reply of an agent that called back: it is kept, and sent by whoever claims the turn next.
func (p *Project) Kept(answer agent.Answer) Reply {
	return Reply{Text: text(answer), Parts: p.parts(answer), Handoff: answer.Handoff, CalledBack: true}
}

// parts cuts an answer into what is delivered, nothing where the project keeps its replies.
func (p *Project) parts(answer agent.Answer) []string {
	if !p.Sends {
		return nil
	}
	return delivery.Split(answer.Replies, p.PartMaxChars)
}

// text is an answer's reply as one text, for the ledger.
func text(answer agent.Answer) string { return strings.Join(answer.Replies, "\n") }

func numbered(texts []string) []part {
	parts := make([]part, len(texts))
	for i, text := range texts {
		parts[i] = part{Number: i + 1, Text: text}
	}
	return parts
}

// resume goes on with the delivery at the first part that is not out.
func (r *run) resume() {
	parts, err := stored(r, "parts", func(ctx context.Context) ([]part, error) { return r.store.parts(ctx, r.work.ID) })
	if err != nil {
		return
	}
	first := 0
	for first < len(parts) && parts[first].State == "sent" {
		first++
	}
	if first == len(parts) {
		r.log.Error().Int64("turn", r.work.ID).Msg("turn has no part left to send and is not done")
		return
	}
	r.deliver(parts, first, false)
}

// deliver sends the parts from the given index on. intended says that the gate has let the first of them through.
func (r *run) deliver(parts []part, first int, intended bool) {
	delay := r.project.PartDelay
	for i := first; i < len(parts); i++ {
		number := parts[i].Number
		if !intended {
			verdict, err := stored(r, "gate", func(ctx context.Context) (string, error) { return r.store.send(ctx, r.work, number) })
			if err != nil {
				return
			}
			if verdict != "send" {
				r.ended(verdict)
				return
			}
		}
		id, ok := r.sendPart(parts[i], len(parts))
		if !ok {
			return
		}
		verdict, err := stored(r, "sent", func(ctx context.Context) (verdict string, err error) {
			if i == len(parts)-1 {
				verdict, r.waits, err = r.store.ended(ctx, r.work, number, id)
				return verdict, err
			}
			return r.store.sent(ctx, r.work, number, id, delay == 0 && r.ctx.Err() == nil)
		})
		if err != nil {
			return
		}
		switch verdict {
		case "send":
			intended = true
		case "next":
			intended = false
			if !pause(r.ctx, delay) {
				r.leave()
				return
			}
		default:
			r.ended(verdict)
			return
		}
	}
}

// sendPart sends one part, or records why it did not go out.
func (r *run) sendPart(p part, of int) (providerID string, ok bool) {
	w := r.work
	r.pass("before part")
	began := time.Now()
	id, err := r.project.Channel.Send(r.calling(), delivery.Part{
		TurnID: w.ID, Project: w.Project, Phone: w.Phone, Address: w.Address, SessionID: w.SessionID, Number: p.Number, Of: of, Text: p.Text,
	})
	r.pass("after part")
	if err != nil && errors.Is(err, context.Canceled) && r.ctx.Err() != nil {
		if call.OutcomeOf(err) == call.NotDone {
			r.unsent(failure{stage: stageDelivery, part: &p.Number})
		} else {
			// The intent stays behind; whoever goes on with the turn sees a part that may be out.
			r.leave()
		}
		return "", false
	}
	r.observe.DeliveryCalled(w.Project, call.OutcomeOf(err).String(), time.Since(began))
	if err != nil {
		r.failed(failure{stage: stageDelivery, part: &p.Number}, err)
		return "", false
	}
	return id, true
}

// Fates of a failed turn.
const (
	fateRetry     = "retry"
	fateDead      = "dead"
	fateUnknown   = "unknown"
	fateReconcile = "reconcile"
)

// failed decides what a failed call leads to.
func (r *run) failed(f failure, err error) {
	var failed *call.Failure
	if !errors.As(err, &failed) {
		failed = &call.Failure{Outcome: call.Unknown, Reason: err.Error()}
	}
	f.reason = failed.Reason
	switch failed.Outcome {
	case call.NotDone:
		r.retry(f, failed.RetryAfter)
	case call.Permanent:
		f.fate = fateDead
		r.record(f)
	default:
		r.unknown(f, failed.RetryAfter)
	}
}

// retry uses up one of the stage's attempts.
func (r *run) retry(f failure, least time.Duration) {
	failures := r.work.AgentFailures + 1
	if f.stage == stageDelivery {
		failures = r.work.DeliveryFailures + 1
	}
	f.counted = true
	f.fate, f.delay = fateRetry, max(r.project.Backoff.Delay(failures, rand.Float64()), least)
	if r.project.Backoff.Exhausted(failures) {
		f.fate, f.delay = fateDead, 0
	}
	r.record(f)
}

// unknown applies the project's policy for an effect that may or may not have happened.
func (r *run) unknown(f failure, least time.Duration) {
	policy := r.project.AgentUnknown
	if f.stage == stageDelivery {
		policy = r.project.DeliveryUnknown
	}
	switch policy {
	case Retry:
		r.retry(f, least)
	case Reconcile:
		f.fate = fateReconcile
		r.record(f)
	default:
		f.fate = fateUnknown
		r.record(f)
	}
}

// record writes the failure down and does what follows from it.
func (r *run) record(f failure) {
	w := r.work
	state, err := stored(r, "fail", func(ctx context.Context) (string, error) { return r.store.fail(ctx, w, f) })
	if err != nil {
		return
	}
	event := r.log.Warn().Str("project", w.Project).Int64("turn", w.ID).Int("attempt", w.Attempt).Str("stage", f.stage).Str("error", f.reason)
	switch {
	case state == "stale":
		event.Msg("failure of a turn that is no longer ours")
		r.letGo()
	case state == fateRetry:
		event.Dur("retry_in_ms", f.delay).Msg("turn failed, will be tried again")
		r.observe.Retry(w.Project, f.delay)
	case f.fate == fateReconcile:
		event.Msg("turn's outcome is unknown, will be asked about")
		r.observe.Retry(w.Project, f.delay)
	case state == fateUnknown:
		event.Msg("turn's outcome is unknown, somebody must resolve it")
	default:
		event.Msg("turn failed for good")
		r.ended(state)
		if state == fateDead && r.project.Fallback {
			r.sayFallback()
		}
	}
}

// sayFallback tells the patient that nobody could answer. It is said at most once: after a doubtful send it stays said.
func (r *run) sayFallback() {
	w := r.work
	for attempt := 1; ; attempt++ {
		// Read anew every time: somebody may have taken the conversation, or erased it.
		text, err := stored(r, "fallback", func(ctx context.Context) (string, error) { return r.store.fallback(ctx, w.ID) })
		if err != nil || text == "" {
			return
		}
		// Not under r.ctx: the turn is over, so nobody renews its lease, and that must not cut the last word short.
		r.pass("before last word")
		id, err := r.project.Channel.Send(r.storing, delivery.Part{
			TurnID: w.ID, Project: w.Project, Phone: w.Phone, Address: w.Address, SessionID: w.SessionID, Of: 1, Text: text,
		})
		r.pass("after last word")
		outcome := call.OutcomeOf(err)
		if outcome == call.NotDone && !r.project.Backoff.Exhausted(attempt) && pause(r.storing, r.project.Backoff.Delay(attempt, rand.Float64())) {
			continue
		}
		state := map[call.Outcome]string{call.Done: "sent", call.Unknown: "unknown"}[outcome]
		if state == "" {
			state = "failed"
		}
		_, _ = stored(r, "fallback sent", func(ctx context.Context) (struct{}, error) {
			return struct{}{}, r.store.fallbackSent(ctx, w.ID, state, id)
		})
		return
	}
}

// ended tells of a turn's end, or lets go of one that is not ours to end.
func (r *run) ended(verdict string) {
	w := r.work
	if verdict == "stale" || verdict == "absent" || verdict == "repeated" {
		r.log.Info().Str("project", w.Project).Int64("turn", w.ID).Int("attempt", w.Attempt).Msg("turn is over or somebody else's")
		r.letGo()
		return
	}
	r.tell(verdict)
}

// tell tells of where a turn came to rest, one line a turn.
func (r *run) tell(verdict string) {
	w := r.work
	if verdict != Held {
		r.observe.Ended(w.Project, verdict)
	}
	r.log.Info().Str("project", w.Project).Int64("turn", w.ID).Str("state", verdict).Int("messages", w.Count).
		Str("fired_by", w.FiredBy).Int("attempt", w.Attempt).Dur("took_ms", time.Since(r.began)).Msg("turn")
}

// storeFor is how long an outcome is tried to be written while the database is away. After that the turn is left as it
// stands: its lease ends, and whoever claims it sees a call without an outcome.
const storeFor = time.Minute

// stored writes, and keeps trying while the database is away or somebody holds the conversation.
func stored[T any](r *run, step string, write func(context.Context) (T, error)) (T, error) {
	r.pass("before " + step)
	defer r.pass("after " + step)
	ctx, cancel := context.WithTimeout(r.storing, storeFor)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		result, err := write(ctx)
		if err == nil {
			return result, nil
		}
		stopping := errors.Is(context.Cause(r.ctx), errShutdown)
		class := postgres.Classify(err)
		if class != postgres.Away && class != postgres.Again || stopping || !pause(ctx, wait) {
			r.log.Error().Int64("turn", r.work.ID).Int("attempt", r.work.Attempt).Str("step", step).Str("error", postgres.Safe(err)).Msg("turn's step not stored")
			return result, err
		}
	}
}
