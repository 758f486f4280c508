package turn

import (
	"context"
	"math/rand/v2"
	"time"

	"fila/internal/call"
)

// reconcileFor is how long the receiver is asked what became of a call before a person has to.
const reconcileFor = 10 * time.Minute

// reconcileBackoff bounds the pauses between the questions.
var reconcileBackoff = Backoff{Min: time.Second, Max: 30 * time.Second}

// reconcile asks what became of the call whose outcome is unknown.
func (r *run) reconcile() {
	if r.work.Stage == stageAgent {
		r.reconcileAgent()
		return
	}
	r.reconcilePart()
}

func (r *run) reconcileAgent() {
	r.pass("before question")
	known, err := r.project.Agent.Reconcile(r.ctx, r.work.ID)
	r.pass("after question")
	switch {
	case err == nil && known.Outcome == call.Done:
		r.reply(known.Answer)
	case err == nil && known.Outcome == call.NotDone:
		r.retry(failure{stage: stageAgent, reason: "the agent says that it did not do it"}, 0)
	default:
		r.askAgain(failure{stage: stageAgent})
	}
}

func (r *run) reconcilePart() {
	w := r.work
	if w.Doubtful == 0 {
		r.resume()
		return
	}
	r.pass("before question of a part")
	known, err := r.project.Channel.Reconcile(r.ctx, w.ID, w.Doubtful)
	r.pass("after question of a part")
	switch {
	case err == nil && known.Outcome == call.Done:
		r.arrived(known.ProviderID)
	case err == nil && known.Outcome == call.NotDone:
		r.retry(failure{stage: stageDelivery, part: &w.Doubtful, reason: "the delivery says that it did not do it"}, 0)
	default:
		r.askAgain(failure{stage: stageDelivery, part: &w.Doubtful})
	}
}

// arrived notes that the doubtful part did go out after all.
func (r *run) arrived(providerID string) {
	verdict, err := stored(r, "sent", func(ctx context.Context) (string, error) {
		return r.store.sent(ctx, r.work, r.work.Doubtful, providerID, false)
	})
	switch {
	case err != nil:
		return
	case verdict == "next":
		r.observe.Retry(r.work.Project, 0)
	default:
		r.ended(verdict)
	}
}

// askAgain waits for the next question, or leaves the turn to a person once there have been questions enough.
func (r *run) askAgain(f failure) {
	f.reason = "what became of the call is still unknown"
	f.fate = fateReconcile
	questions := 1
	for asked := reconcileBackoff.Min; asked < r.work.Reconciling && questions < 10; asked *= 2 {
		questions++
	}
	f.delay = reconcileBackoff.Delay(questions, rand.Float64())
	if r.work.Reconciling > reconcileFor {
		f.fate = fateUnknown
	}
	r.record(f)
}
