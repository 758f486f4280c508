package turn_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"fila/internal/turn"
)

// Every answer of the agent, and what the turn becomes by it.
func TestAgentAnswers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		agent http.HandlerFunc
		// state, parts and mode are those of turn, deliveries and conversation.
		state, parts, mode string
	}{
		"one reply":              {says(200, `{"reply": "bom dia"}`), "done", "1 sent", "agent"},
		"several":                {says(200, `{"replies": ["a", "b"]}`), "done", "1 sent, 2 sent", "agent"},
		"handoff with a reply":   {says(200, `{"reply": "já chamo", "handoff": true}`), "done", "1 sent", "human"},
		"handoff alone":          {says(200, `{"handoff": true}`), "done", "", "human"},
		"nothing to say":         {says(204, ""), "done", "", "agent"},
		"an empty object":        {says(200, `{}`), "done", "", "agent"},
		"white space":            {says(200, `{"reply": " \n"}`), "done", "", "agent"},
		"later":                  {says(202, ""), "running", "", "agent"},
		"409":                    {says(409, ""), "retrying", "", "agent"},
		"423":                    {says(423, ""), "retrying", "", "agent"},
		"425":                    {says(425, ""), "retrying", "", "agent"},
		"429":                    {says(429, ""), "retrying", "", "agent"},
		"500":                    {says(500, ""), "retrying", "", "agent"},
		"503":                    {says(503, ""), "retrying", "", "agent"},
		"400":                    {says(400, ""), "dead", "", "agent"},
		"404":                    {says(404, ""), "dead", "", "agent"},
		"422":                    {says(422, ""), "dead", "", "agent"},
		"no answer of this kind": {says(200, "ok"), "dead", "", "agent"},
		"a lost connection":      {hangsUp, "retrying", "", "agent"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.agent = test.agent
			c.run(c.begin())
			c.want("state", c.state(), test.state)
			c.want("parts", c.parts(), test.parts)
			c.want("mode", c.value(`SELECT mode FROM conversations`), test.mode)
			c.want("lease", c.value(`SELECT lease_until FROM turns`), "")
		})
	}
}

// Every answer of the delivery, and what the turn becomes by it.
func TestDeliveryAnswers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		part         http.HandlerFunc
		state, parts string
	}{
		"200":               {says(200, `{"id": "p"}`), "done", "1 sent"},
		"201, no JSON":      {says(201, "ok"), "done", "1 sent"},
		"204":               {says(204, ""), "done", "1 sent"},
		"408":               {says(408, ""), "retrying", "1 pending"},
		"409":               {says(409, ""), "retrying", "1 pending"},
		"425":               {says(425, ""), "retrying", "1 pending"},
		"429":               {says(429, ""), "retrying", "1 pending"},
		"503":               {says(503, ""), "retrying", "1 pending"},
		"400":               {says(400, ""), "dead", "1 failed"},
		"404":               {says(404, ""), "dead", "1 failed"},
		"a lost connection": {hangsUp, "unknown", "1 unknown"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.part = test.part
			c.run(c.begin())
			c.want("state", c.state(), test.state)
			c.want("parts", c.parts(), test.parts)
		})
	}
}

// A refused connection did nothing, whatever the policy for unknown outcomes says.
func TestRefusedConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c.connect(gone.URL, gone.URL)
	c.project.AgentUnknown = turn.Hold
	c.run(c.begin())
	c.want("state", c.state(), "retrying")
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.agent = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	c.run(c.begin())
	c.want("next attempt in two minutes", c.value(`SELECT next_attempt_at > clock_timestamp() + interval '60 s' FROM turns`), "true")
}

func TestUnknownPolicies(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ policy, state, asks string }{
		"retry":     {turn.Retry, "retrying", "true"},
		"hold":      {turn.Hold, "unknown", "false"},
		"reconcile": {turn.Reconcile, "unknown", "true"},
	}
	for name, test := range tests {
		for stage, spoil := range map[string]func(*clinic){
			"agent":    func(c *clinic) { c.agent, c.project.AgentUnknown = hangsUp, test.policy },
			"delivery": func(c *clinic) { c.part, c.project.DeliveryUnknown = hangsUp, test.policy },
		} {
			t.Run(stage+", "+name, func(t *testing.T) {
				t.Parallel()
				c := newClinic(t)
				spoil(c)
				c.run(c.begin())
				c.want("state", c.state(), test.state)
				c.want("stage", c.value(`SELECT stage FROM turns`), stage)
				c.want("goes on by itself", c.value(`SELECT next_attempt_at IS NOT NULL FROM turns`), test.asks)
			})
		}
	}
}

// Three failures of one stage end the turn, with its evidence.
func TestRetriesEndInDeath(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.agent = says(503, "")
	c.run(c.begin())
	c.run(c.claim())
	c.want("state after two failures", c.state(), "retrying")
	c.run(c.claim())
	c.want("state after three", c.state(), "dead")
	c.want("attempt", c.value(`SELECT attempt FROM turns`), "3")
	c.want("errors", c.value(`SELECT jsonb_array_length(errors) FROM turns`), "3")
	if asked, _ := c.calls(); asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}

// A retry goes on at the part that did not go out, and does not ask the agent again.
func TestPartsResume(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.agent = says(200, `{"replies": ["a", "b", "c"]}`)
	once := first(says(503, ""), says(200, ""))
	c.part = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Idempotency-Key"), ".2") {
			once(w, r)
		}
	}
	c.run(c.begin())
	c.want("parts before", c.parts(), "1 sent, 2 pending, 3 pending")
	c.run(c.claim())
	c.want("parts after", c.parts(), "1 sent, 2 sent, 3 sent")
	asked, sent := c.calls()
	for i := range sent {
		_, sent[i], _ = strings.Cut(sent[i], ".")
	}
	if asked != 1 || !slices.Equal(sent, []string{"1", "2", "2", "3"}) {
		t.Errorf("asked %d times, sent parts %v", asked, sent)
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stage string
		said  http.HandlerFunc
		state string
	}{
		"agent did it":            {"agent", says(200, `{"reply": "bom dia"}`), "done"},
		"agent did not":           {"agent", says(404, ""), "retrying"},
		"agent does not know":     {"agent", says(202, ""), "unknown"},
		"agent fails to say":      {"agent", says(500, ""), "unknown"},
		"delivery did it":         {"delivery", says(200, `{"id": "p"}`), "done"},
		"delivery did not":        {"delivery", says(404, ""), "retrying"},
		"delivery does not know":  {"delivery", says(202, ""), "unknown"},
		"delivery hangs up on us": {"delivery", hangsUp, "unknown"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.become = test.said
			if test.stage == "agent" {
				c.agent, c.project.AgentUnknown = hangsUp, turn.Reconcile
			} else {
				c.part, c.project.DeliveryUnknown = hangsUp, turn.Reconcile
			}
			c.run(c.begin())
			w := c.claim()
			c.want("claimed to", w.Why, turn.WhyReconcile)
			c.run(w)
			c.want("state", c.state(), test.state)
			if asked, _ := c.calls(); asked != 1 {
				t.Errorf("the agent was asked %d times", asked)
			}
		})
	}
}

// After ten minutes of questions a person has to decide.
func TestReconcileEnds(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.agent, c.project.AgentUnknown = hangsUp, turn.Reconcile
	c.run(c.begin())
	c.exec(`UPDATE turns SET reconcile_since = reconcile_since - interval '11 minutes'`)
	c.run(c.claim())
	c.want("state", c.state(), "unknown")
	c.want("asked about again", c.value(`SELECT next_attempt_at FROM turns`), "")
}

// The last word of a dead turn is said once, also where that takes a second try.
func TestFallback(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]http.HandlerFunc{"at once": says(200, ""), "at the second try": first(says(503, ""), says(200, ""))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.exec(`UPDATE projects SET fallback_text = 'já chamo alguém'`)
			c.project.Fallback = true
			c.agent, c.part = says(400, ""), part
			c.run(c.begin())
			c.want("state", c.state(), "dead")
			c.want("parts", c.parts(), "0 sent")
			if _, sent := c.calls(); !strings.HasSuffix(sent[0], ".fallback") {
				t.Errorf("sent under the key %s", sent[0])
			}
		})
	}
}

// A process that shuts down gives its turn away: the next one goes on at once, and no crash is counted.
func TestHandBack(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	c.agent = first(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
	}, says(200, `{"reply": "bom dia"}`))
	t.Cleanup(func() { close(answer) })
	w := c.begin()
	over := make(chan struct{})
	go func() { defer close(over); c.run(w) }()
	<-asked
	c.keeper.Shutdown()
	<-over
	c.instance("two", time.Minute)
	next := c.claim()
	c.want("claimed because", next.Why, turn.WhyHandedBack)
	c.run(next)
	c.want("state", c.state(), "done")
	c.want("attempt", c.value(`SELECT attempt FROM turns`), "2")
	c.want("crashes", c.value(`SELECT crashes FROM turns`), "0")
}

// Whoever was asking about an unknown outcome when its lease ran out is fenced off by the next one that asks: it buries no turn a second
// time, and says no last word again.
func TestTwoAskAboutOneOutcome(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.exec(`UPDATE projects SET fallback_text = 'desculpe'`)
	c.project.DeliveryUnknown, c.project.Fallback, c.project.Backoff.Attempts = turn.Reconcile, true, 1
	var frozen turn.Work
	wakes := first(func(http.ResponseWriter, *http.Request) { c.run(frozen) }, says(200, "")) // while the last word is on its way
	c.part, c.become = first(hangsUp, wakes), says(404, "")
	w := c.begin()
	c.run(w)
	frozen = c.claim()
	c.want("claimed because", frozen.Why, turn.WhyReconcile)
	c.exec(`UPDATE turns SET lease_until = clock_timestamp() - interval '1 second'`)
	c.instance("two", lease)
	c.run(c.claim())
	c.want("state", c.state(), "dead")
	_, sent := c.calls()
	c.want("sent", strings.Join(sent, ", "), fmt.Sprintf("%[1]d.1, %[1]d.fallback", w.ID))
}

// A turn whose conversation a person took while nobody ran it is discarded by its claim, and told of like any other end.
func TestDiscardedByItsClaim(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.begin()
	c.exec(`SELECT fila_takeover('clinic', $1, 60, 'ana', 'asked')`, phones[0])
	c.exec(`UPDATE turns SET lease_until = clock_timestamp() - interval '1 second'`)
	c.run(c.claim())
	asked, sent := c.calls()
	c.want("state", c.state(), "discarded")
	c.want("calls", fmt.Sprint(asked, len(sent)), "0 0")
	c.want("ends", fmt.Sprint(c.ended), "[discarded]")
	if line := c.log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, `"state":"discarded"`) {
		t.Errorf("logged %q, want one line of the end", line)
	}
}

// Hanging up for a newer burst is not the agent's failure, whatever somebody does to the conversation at that moment.
func TestInterruptedMeanwhile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ meanwhile, state string }{
		"nothing":   {"", "superseded"},
		"suspended": {`SELECT fila_suspend('clinic', $1, 'ana', 'looking')`, "superseded"},
		"taken":     {`SELECT fila_takeover('clinic', $1, 60, 'ana', 'looking')`, "discarded"},
		"emptied":   {`DELETE FROM fila_mensagens WHERE telefone = $1`, "retrying"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.exec(`UPDATE projects SET during_turn = 'interrupt'`)
			c.project.Backoff.Attempts = 1
			asked, answer := make(chan struct{}), make(chan struct{})
			c.agent = func(http.ResponseWriter, *http.Request) {
				close(asked)
				<-answer
			}
			t.Cleanup(func() { close(answer) })
			w := c.begin()
			over := make(chan struct{})
			go func() { defer close(over); c.run(w) }()
			<-asked
			c.push("m2")
			c.want("interrupt", c.value(`SELECT fila_interrupt($1, NULL)`, w.ID), "asked")
			if test.meanwhile != "" {
				c.exec(test.meanwhile, phones[0])
			}
			c.keeper.Interrupt(w.ID)
			<-over
			c.want("state", c.value(`SELECT state FROM turns WHERE id = $1`, w.ID), test.state)
			c.want("failures", c.value(`SELECT agent_failures FROM turns WHERE id = $1`, w.ID), "0")
		})
	}
}

// A turn that is discarded between two of its parts lets go of its conversation at once.
func TestDiscardedBetweenParts(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.agent, c.project.PartDelay = says(200, `{"replies": ["a", "b"]}`), patience
	w := c.begin()
	over := make(chan struct{})
	go func() { defer close(over); c.run(w) }()
	c.eventually("the first part is out", func() bool { return c.parts() == "1 sent, 2 pending" })
	c.exec(`SELECT fila_discard($1, 'ana', 'not needed')`, w.ID)
	c.keeper.Renew(c.Context())
	<-over
	c.want("state", c.state(), "discarded")
	c.want("lease", c.value(`SELECT lease_until FROM turns`), "")
	c.want("parts", c.parts(), "1 sent, 2 pending")
}

// Where replies are kept and not delivered, the turn ends with its reply.
func TestRepliesAreKept(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.project.Sends = false
	c.run(c.begin())
	c.want("state", c.state(), "done")
	c.want("reply", c.value(`SELECT reply FROM turns`), "bom dia")
	c.want("parts", c.parts(), "")
}
