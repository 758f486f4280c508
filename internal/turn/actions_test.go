package turn_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"fila/internal/agent"
	"fila/internal/postgres"
	"fila/internal/queue"
	"fila/internal/turn"
)

// action is something that may happen.
type action struct {
	name string
	// weight says how often beside the others, can whether it may happen now.
	weight int
	can    bool
	do     func()
}

func (m *machine) actions() []action {
	runs := len(m.runs()) > 0
	floor := len(m.phonesIn("agent", "human")) > 0
	away := len(m.phonesIn("human", "suspended")) > 0
	waiting := len(m.phonesWaiting()) > 0
	in := func(states ...string) bool { return len(m.before.in(states...)) > 0 }
	return []action{
		{"burst", 8, true, m.burst},
		{"push", 2, true, m.push},
		{"from the clinic", 1, true, m.fromClinic},
		{"foreign row", 2, true, m.foreignRow},
		{"adopt", 1, len(m.model.foreign) > 0, m.adopt},
		{"time", 1, true, m.elapse},
		{"drain", 2, waiting, m.drain},
		{"wake", 8, in(unfinished...), m.wake},
		{"run", 6, runs, m.run},
		{"run to the end", 6, runs, m.runToEnd},
		{"crash", 5, runs, m.crash},
		{"crash at", 10, runs, m.crashAt},
		{"begin a call", 4, runs, m.beginCall},
		{"doubt", 5, runs, m.doubt},
		{"crash at a question", 8, in("unknown") && m.asksBack(), m.crashAtQuestion},
		{"crash at an interruption", 8, runs && m.rules.duringTurn == "interrupt", m.crashAtInterruption},
		{"freeze in a call", 5, true, m.freezeInCall},
		{"discard in a call", 4, runs, m.discardInCall},
		{"silence while sending", 4, runs, m.silenceSending},
		{"renew", 2, runs, m.renew},
		{"shut down", 5, runs, m.shutDown},
		{"call back", 2, len(m.promised()) > 0, m.callBack},
		{"confirm", 2, in("running"), m.confirm},
		{"take the floor", 1, floor, m.takeFloor},
		{"give it back", 5, away, m.giveFloor},
		{"flush", 1, waiting, m.flush},
		{"resolve", 4, in("unknown"), m.resolve},
		{"redrive", 5, in("dead"), m.redrive},
		{"discard", 1, in(unfinished...), m.discard},
		{"erase", 1, len(m.before.Turns) > 0, m.erase},
	}
}

// unfinished are the states in which a turn is open.
var unfinished = []string{"running", "retrying", "replied", "sending", "unknown"}

// step does one of the actions.
func (m *machine) step(*rapid.T) {
	var all []action
	for _, a := range m.actions() {
		if a.name == m.favoured {
			a.weight *= 12
		}
		if a.can {
			all = append(all, slices.Repeat([]action{a}, a.weight)...)
		}
	}
	one := pick(m, "action", all)
	m.Log("action: ", one.name)
	m.act(one.name, one.do)
}

// pick draws one of the list, all alike: rapid itself prefers the first.
func pick[T any](m *machine, label string, from []T) T {
	return from[rapid.Custom(func(t *rapid.T) int {
		n := 0
		for range 12 {
			n <<= 1
			if rapid.Bool().Draw(t, "bit") {
				n++
			}
		}
		return n % len(from)
	}).Draw(m.T, label)]
}

func between(m *machine, label string, least, most int) int {
	numbers := make([]int, most-least+1)
	for i := range numbers {
		numbers[i] = least + i
	}
	return pick(m, label, numbers)
}

// act does one thing and looks at what it has done.
func (m *machine) act(name string, do func()) {
	m.start()
	do()
	m.check(name)
}

func (m *machine) start() {
	m.acting = acting{modes: map[string]string{}}
	for _, phone := range phones {
		m.acting.modes[phone] = m.model.modeOf(phone)
	}
}

func (m *machine) drawPhone() string { return pick(m, "phone", phones) }

func (m *machine) drawProcess() *process {
	return pick(m, "process", m.processes)
}

func (m *machine) newMessage(phone string) message {
	m.written++
	msg := message{phone: phone, seq: m.written, id: fmt.Sprint("id-", m.written), text: fmt.Sprint("text-", m.written), at: m.model.now}
	switch between(m, "id", 0, 5) {
	case 0:
		msg.id = ""
	case 1:
		if m.written > 1 {
			msg.id = fmt.Sprint("id-", between(m, "known id", 1, m.written-1))
		}
	}
	return msg
}

func (m *machine) push() {
	var sent []queue.Message
	var want []string
	for range between(m, "messages", 1, 3) {
		msg := m.newMessage(m.drawPhone())
		sent = append(sent, queue.Message{Project: projectName, ID: msg.id, Phone: msg.phone, Address: msg.phone, Text: msg.text, Kind: "text"})
		want = append(want, m.model.accept(msg, m.ignores()))
	}
	for i, r := range m.store(sent) {
		if r.Status != want[i] {
			m.Fatalf("message %d of a push is %s, want %s", i, r.Status, want[i])
		}
		m.event("message " + r.Status)
	}
}

// burst is what most of life is: a patient writes, is quiet, and a turn begins.
func (m *machine) burst() {
	phone := m.drawPhone()
	for range between(m, "messages", 1, 3) {
		msg := m.newMessage(phone)
		want := m.model.accept(msg, m.ignores())
		got := m.store([]queue.Message{{Project: projectName, ID: msg.id, Phone: msg.phone, Address: msg.phone, Text: msg.text, Kind: "text"}})
		if got[0].Status != want {
			m.Fatalf("a message is %s, want %s", got[0].Status, want)
		}
	}
	m.pass(windowSeconds + 1)
	m.drainPhones(m.drawProcess(), phones)
}

// wake lets the time of some retry, lease or question come.
func (m *machine) wake() {
	m.pass(pick(m, "seconds", []int{31, 121, leaseSeconds + 1, 401, 601}))
	m.claimBy(m.drawProcess(), between(m, "slots", 1, 5))
}

func (m *machine) store(messages []queue.Message) []queue.Receipt {
	receipts, err := m.queue.Push(m.ctx, messages)
	if err != nil {
		m.Fatalf("push: %v", err)
	}
	return receipts
}

// fromClinic is a message that the clinic itself wrote: a person's, or the echo of a part of ours.
func (m *machine) fromClinic() {
	m.written++
	msg := queue.Message{
		Project: projectName, ID: fmt.Sprint("clinic-", m.written), Phone: m.drawPhone(), Text: fmt.Sprint("person ", m.written),
		Kind: "text", Ignored: queue.FromMe,
	}
	msg.Address = msg.Phone
	want := queue.FromMe
	if ids := m.sentParts(msg.Phone); len(ids) > 0 && rapid.Bool().Draw(m.T, "echo") {
		msg.ID, want = pick(m, "part", ids), "echo"
	}
	if m.model.known[msg.ID] {
		want = ""
	}
	m.model.known[msg.ID] = true
	if want == queue.FromMe && m.model.modeOf(msg.Phone) != "suspended" {
		m.model.takeover(msg.Phone, m.model.now+takeoverSecond, m.ignores())
		m.acting.audited = true
	}
	if got := m.store([]queue.Message{msg})[0].Reason; got != want {
		m.Fatalf("a message of the clinic's own is %q, want %q", got, want)
	}
	m.event("from the clinic: " + want)
}

func (m *machine) sentParts(phone string) (ids []string) {
	for _, t := range m.before.Turns {
		for _, p := range t.Parts {
			if t.Phone == phone && p.State == "sent" && m.outside.happened(t.ID, p.Part) > 0 && p.Part > 0 && m.knownToUs(t.ID, p.Part) {
				ids = append(ids, providerID(t.ID, p.Part))
			}
		}
	}
	return ids
}

// knownToUs: a part that a person says was sent has no provider's id.
func (m *machine) knownToUs(turnID int64, part int) bool {
	var known bool
	err := m.pool.QueryRow(m.ctx, `SELECT provider_id IS NOT NULL FROM deliveries WHERE turn_id = $1 AND part = $2`, turnID, part).Scan(&known)
	return err == nil && known
}

func (m *machine) foreignRow() {
	msg := m.newMessage(m.drawPhone())
	m.exec(`INSERT INTO fila_mensagens_clinic (telefone, mensagem, id_mensagem) VALUES ($1, $2, $3)`, typed(msg.phone), msg.text, msg.id)
	m.model.foreign = append(m.model.foreign, msg)
	m.model.fate[msg.text] = ""
}

func (m *machine) adopt() {
	m.adopted(phones)
	if _, err := m.processes[0].store.Adopt(m.ctx, projectName); err != nil {
		m.Fatalf("adopt: %v", err)
	}
}

// adopted lets the model take in what it knows the database is about to.
func (m *machine) adopted(asked []string) {
	for _, became := range m.model.adopt(asked, m.ignores()) {
		m.event("foreign row " + became)
	}
}

// elapse lets time pass: in the database, in the model, and on every process's own clock.
func (m *machine) elapse() {
	m.pass(pick(m, "seconds", []int{31, 101, 121, leaseSeconds + 1, 601, windowSeconds + 1, ceilingSeconds + 1, takeoverSecond + 1}))
}

const shift = `
	UPDATE fila_mensagens SET timestamp = timestamp - by FROM make_interval(secs => %[1]d) AS by;
	UPDATE conversations SET until = until - by, typing_at = typing_at - by, due_now_at = due_now_at - by FROM make_interval(secs => %[1]d) AS by;
	UPDATE hanging_calls SET lease_until = lease_until - by FROM make_interval(secs => %[1]d) AS by;
	UPDATE turns SET lease_until = lease_until - by, next_attempt_at = next_attempt_at - by, reply_until = reply_until - by,
		reconcile_since = reconcile_since - by, first_at = first_at - by, due_at = due_at - by, drained_at = drained_at - by
	FROM make_interval(secs => %[1]d) AS by`

func (m *machine) pass(seconds int) {
	if m.acting.stale != nil {
		m.moveOn() // what a late writer did is judged before everything gets older
	}
	if _, err := m.pool.Exec(m.ctx, fmt.Sprintf(shift, seconds), pgx.QueryExecModeSimpleProtocol); err != nil {
		m.Fatalf("let time pass: %v", err)
	}
	m.model.now += seconds
	for _, p := range m.processes {
		p.keeper.Age(time.Duration(seconds) * time.Second)
	}
	m.check("time")
	m.start()
}

func (m *machine) drain() {
	p := m.drawProcess()
	asked := slices.Clone(phones)
	if rapid.Bool().Draw(m.T, "one phone") {
		asked = []string{m.drawPhone()}
	}
	m.drainPhones(p, asked)
}

func (m *machine) drainPhones(p *process, asked []string) {
	m.acting.runs = true
	m.adopted(asked)
	found, err := p.store.Drain(m.ctx, projectName, asked)
	if err != nil {
		m.Fatalf("drain: %v", err)
	}
	for _, d := range found {
		m.judge(p, d)
	}
}

// judge compares one verdict with the model's, and does what a scheduler does about it.
func (m *machine) judge(p *process, d turn.Drained) {
	due, taken, rest, more := m.model.due(d.Phone, m.rules.maxMessages)
	m.event("drain: " + d.Verdict)
	open := m.before.openTurn(d.Phone)
	want := turn.Early
	switch {
	case len(taken) == 0:
		want = turn.Empty
	case open != nil:
		want = turn.Open
		if d.Verdict == turn.Early || d.Verdict == turn.Interrupt {
			if m.rules.duringTurn != "interrupt" || due != (d.Verdict == turn.Interrupt) {
				m.Fatalf("an open turn's drain answered %s", d.Verdict)
			}
			want = d.Verdict
		}
	case m.before.hangsUp(d.Phone):
		want = turn.HangingUp
	case m.model.modeOf(d.Phone) != "agent":
		want = m.model.modeOf(d.Phone)
	case due:
		want = turn.Begun
	}
	if d.Verdict != want {
		m.Fatalf("a drain answered %s, want %s", d.Verdict, want)
	}
	switch d.Verdict {
	case turn.Begun:
		m.begun(p, d, taken, more)
		m.model.drained(d.Phone, rest, more)
	case turn.Interrupt:
		m.interrupt(p, d)
	}
}

func (m *machine) begun(p *process, d turn.Drained, taken []message, more bool) {
	if want := strings.Join(textsOf(taken), " "); d.Work.Text != want {
		m.Fatalf("a turn began with %q, want %q", d.Work.Text, want)
	}
	if more {
		m.event("burst over max_messages")
	}
	m.event("fired by " + d.Work.FiredBy)
	m.begin(p, d.Work, false)
}

func (m *machine) interrupt(p *process, d turn.Drained) {
	if p.keeper.Interrupt(d.Turn) {
		m.event("interrupted here")
		return
	}
	verdict, err := p.store.Interrupt(m.ctx, d.Turn)
	if err != nil {
		m.Fatalf("interrupt: %v", err)
	}
	m.event("interrupted elsewhere: " + verdict)
}

func (m *machine) claimBy(p *process, slots int) []*oneRun {
	m.acting.runs = true
	claimed, err := p.store.Claim(m.ctx, projectName, slots)
	if err != nil {
		m.Fatalf("claim: %v", err)
	}
	var begun []*oneRun
	for _, w := range claimed {
		m.event("claim: " + w.Why)
		if fences := w.Why == turn.WhyAbandoned || w.Why == turn.WhyHandedBack || w.Why == turn.WhyRetry; fences && w.Attempt <= m.before.turn(w.ID).Attempt {
			m.Fatalf("invariant 7: turn %d is %s and claimed under attempt %d again", w.ID, w.Why, w.Attempt)
		}
		if w.State == "discarded" {
			m.event("discarded for a person at a claim")
		}
		begun = append(begun, m.begin(p, w, m.before.turn(w.ID).Answered))
	}
	return begun
}

// behave draws how agent and channel do from now on.
func (m *machine) behave() {
	agents := []string{
		agentReplies, agentReplies, agentParts, agentParts, agentNothing, agentHandsOff, agentLater, agentLater, agentBusy, agentRefuses, agentLost, agentUnheard,
	}
	channels := []string{channelSends, channelSends, channelSends, channelBusy, channelRefuses, channelLost, channelUnheard}
	m.outside.does(
		pick(m, "the agent", agents), pick(m, "the channel", channels),
		between(m, "takes its time", 0, 2) == 0, between(m, "still unknown", 0, 3) == 0)
}

func (m *machine) drawRun() *oneRun { return m.drawRunOf(nil) }

// drawRunOf draws one of these runs, or of all where there are none.
func (m *machine) drawRunOf(runs []*oneRun) *oneRun {
	if len(runs) == 0 {
		runs = m.runs()
	}
	r := pick(m, "run", runs)
	m.acting.runs = true
	m.behave()
	if t := m.before.turn(r.turn); t != nil && t.Attempt > r.attempt {
		m.acting.stale = t
		m.event("late writer")
	}
	return r
}

func (m *machine) run() {
	r := m.drawRun()
	m.advance(r, between(m, "points", 1, 6))
}

func (m *machine) runToEnd() { m.advance(m.drawRun(), 1000) }

// crash kills a process a few points behind the one where one of its runs stands.
func (m *machine) crash() {
	r := m.drawRun()
	m.advance(r, between(m, "points", 0, 8))
	m.die(r)
}

// crashAt kills a process when one of its runs comes to a certain point, should it come there.
func (m *machine) crashAt() {
	point := pick(m, "point", slices.Concat(points, seldom, seldom))
	r := m.drawRunBefore(point)
	m.steer(point)
	m.advanceTo(r, point)
	m.die(r)
}

// drawRunBefore draws a run that may come to the point, where there is one.
func (m *machine) drawRunBefore(point string) *oneRun {
	stage := "agent"
	if about(point, "parts", "gate", "part", "sent") {
		stage = "delivery"
	}
	return m.drawRunOf(slices.DeleteFunc(m.runs(), func(r *oneRun) bool {
		t := m.before.turn(r.turn)
		return t == nil || t.Stage != stage
	}))
}

// steer has agent and channel do what leads to the point.
func (m *machine) steer(point string) {
	switch {
	case about(point, "fallback", "last word", "fallback sent"):
		m.outside.does(agentRefuses, channelRefuses, false, false)
	case about(point, "await reply"):
		m.outside.does(agentLater, channelSends, false, false)
	case about(point, "gate", "sent", "part", "reply"):
		m.outside.does(agentParts, channelSends, false, false)
	}
}

func about(point string, what ...string) bool {
	return slices.ContainsFunc(what, func(w string) bool { return point == "before "+w || point == "after "+w })
}

// beginCall brings a run into a call that takes its time.
func (m *machine) beginCall() { m.callBegun() }

func (m *machine) callBegun() *oneRun {
	r := m.drawRun()
	if between(m, "whose call", 0, 1) == 0 {
		m.outside.takeTime(slowness{agent: true})
	} else {
		m.outside.does(agentParts, pick(m, "the channel", []string{channelSends, channelSends, channelLost}), false, false)
		m.outside.takeTime(slowness{channel: true})
	}
	m.advanceTo(r, inCall)
	m.moveOn()
	return r
}

// freezeInCall lets a process fall silent in a call until another one has taken its turns, and wake up.
func (m *machine) freezeInCall() {
	if len(m.owners()) == 0 {
		m.burst()
		m.moveOn()
	}
	owners := m.owners()
	if len(owners) == 0 {
		return
	}
	r := m.drawRunOf(owners)
	m.outside.does(pick(m, "the agent", []string{agentReplies, agentParts}), channelSends, false, false)
	m.outside.takeTime(pick(m, "whose call", []slowness{{agent: true}, {channel: true}}))
	m.advanceTo(r, inCall)
	m.moveOn()
	m.pass(leaseSeconds + 1)
	m.claimBy(m.otherThan(r.process), 5)
	if between(m, "finds out", 0, 3) == 0 {
		m.renewBy(r.process)
	}
	if !r.over {
		m.moveStale(r)
	}
}

// owners are the runs whose turn nobody else has.
func (m *machine) owners() []*oneRun {
	return slices.DeleteFunc(m.runs(), func(r *oneRun) bool {
		t := m.before.turn(r.turn)
		return t == nil || !t.Leased || t.Attempt != r.attempt
	})
}

func (m *machine) otherThan(p *process) *process {
	if m.processes[0] == p {
		return m.processes[1]
	}
	return m.processes[0]
}

// moveStale lets a run go on whose turn others may have.
func (m *machine) moveStale(r *oneRun) {
	m.check("freeze")
	m.start()
	m.acting.runs = true
	if t := m.before.turn(r.turn); t != nil && t.Attempt > r.attempt {
		m.acting.stale = t
	}
	m.advance(r, 1000)
}

// discardInCall has a person settle a turn while its call is under way; the next burst must wait for the call's end.
func (m *machine) discardInCall() {
	r := m.callBegun()
	if t := m.before.openTurn(r.phone); r.over || t == nil || t.ID != r.turn {
		return
	}
	_, err := m.people.Discard(m.ctx, projectName, r.turn, "rita", "no use")
	if !m.did("discard in a call", err) {
		return
	}
	m.store([]queue.Message{m.newer(r.phone)})
	m.moveOn()
	if len(m.model.conversation(r.phone).waiting) > 0 {
		_, err = m.people.Flush(m.ctx, projectName, r.phone, "rita")
		m.did("flush", err)
		m.model.conversation(r.phone).dueNow = true
	}
	m.drainPhones(m.drawProcess(), []string{r.phone})
	if between(m, "hangs up", 0, 1) == 0 {
		m.renewBy(r.process)
	}
}

// moveOn looks at what has been done so far.
func (m *machine) moveOn() {
	runs := m.acting.runs
	m.check("a part of an action")
	m.start()
	m.acting.runs = runs
}

// silenceSending has a person take the conversation while a part is going out.
func (m *machine) silenceSending() {
	r := m.drawRun()
	m.outside.does(agentParts, channelSends, false, false)
	m.advanceTo(r, "before part")
	if r.over {
		return
	}
	m.moveOn()
	if mode := m.model.modeOf(r.phone); mode != "agent" {
		return
	}
	m.silence(r.phone)
	m.moveOn()
	m.advance(r, between(m, "points", 1, 10))
}

// doubt leaves an outcome of which nobody knows.
func (m *machine) doubt() {
	r := m.drawRun()
	m.outside.does(agentParts, pick(m, "the channel", []string{channelLost, channelUnheard}), false, false)
	m.advance(r, 1000)
}

// asksBack tells whether there is anybody to ask about an unknown outcome.
func (m *machine) asksBack() bool {
	return m.rules.agentUnknown == turn.Reconcile || m.rules.deliveryUnknown == turn.Reconcile
}

// crashAtQuestion has unknown outcomes asked about, and kills the process while it does.
func (m *machine) crashAtQuestion() {
	m.pass(121)
	claimed := m.claimBy(m.drawProcess(), 5)
	m.behave()
	for _, r := range claimed {
		if r.over {
			continue
		}
		m.advanceTo(r, pick(m, "point", []string{"after question", "before question", "after question of a part", "before question of a part", "before fail"}))
		m.die(r)
		return
	}
}

// crashAtInterruption has a call hung up on by a newer burst, and kills the process while it does.
func (m *machine) crashAtInterruption() {
	r := m.drawRun()
	if !m.before.answers(r.phone, r.turn, r.attempt) {
		return
	}
	m.outside.takeTime(slowness{agent: true})
	m.advanceTo(r, inCall)
	if r.over {
		return
	}
	m.store([]queue.Message{m.newer(r.phone)})
	m.pass(windowSeconds + 1)
	m.drainPhones(r.process, []string{r.phone})
	m.advanceTo(r, pick(m, "point", []string{"before interrupted", "after interrupted", ended}))
	m.die(r)
}

// newer is one more message of a conversation.
func (m *machine) newer(phone string) queue.Message {
	m.written++
	msg := message{phone: phone, seq: m.written, id: fmt.Sprint("id-", m.written), text: fmt.Sprint("text-", m.written), at: m.model.now}
	m.model.accept(msg, m.ignores())
	return queue.Message{Project: projectName, ID: msg.id, Phone: phone, Address: phone, Text: msg.text, Kind: "text"}
}

func (m *machine) die(r *oneRun) {
	if r.over {
		return
	}
	m.event("crash " + r.point)
	m.event(crashAround(r.point))
	m.kill(r.process)
}

func (m *machine) renew() { m.renewBy(m.drawProcess()) }

func (m *machine) renewBy(p *process) {
	p.keeper.Renew(m.ctx)
	for _, r := range p.runs {
		if t := m.before.turn(r.turn); t != nil && t.Open && t.Attempt == r.attempt && t.Leased {
			r.leased = m.model.now
		}
	}
}

// shutDown stops a process in good order: its runs are told, and end, unless the process is killed in the middle.
func (m *machine) shutDown() {
	r := m.drawRun()
	p := r.process
	m.acting.stale = nil // the turn's owner may move as well
	if pick(m, "in a call", []bool{false, true, true, true}) {
		m.outside.takeTime(slowness{agent: true})
		m.advanceTo(r, inCall)
	}
	if r.over {
		return
	}
	p.keeper.Shutdown()
	if between(m, "killed", 0, 1) == 0 {
		m.advanceTo(r, pick(m, "point", []string{"before hand back", "after hand back", "before fail", "after ask"}))
		m.die(r)
		return
	}
	for len(p.runs) > 0 {
		m.advance(p.runs[0], 1000)
	}
	m.kill(p)
}

// promised are the turns whose agent said that it will call back.
func (m *machine) promised() (found []*turnRow) {
	for i := range m.before.Turns {
		if m.later[m.before.Turns[i].ID] {
			found = append(found, &m.before.Turns[i])
		}
	}
	return found
}

// callBack is the answer of an agent that said 202.
func (m *machine) callBack() {
	t := pick(m, "turn", m.promised())
	var attempt *int
	if rapid.Bool().Draw(m.T, "names its attempt") {
		attempt = &t.Attempt
	}
	m.acting.runs = true
	said := m.project.Kept(agent.Answer{Replies: []string{fmt.Sprint("late reply to turn ", t.ID)}})
	verdict, err := m.processes[0].store.Reply(m.ctx, projectName, t.ID, attempt, said)
	if err != nil {
		m.Fatalf("call back: %v", err)
	}
	m.event("call back: " + verdict)
}

func (m *machine) confirm() {
	t := pick(m, "turn", m.before.in("running"))
	done, err := m.people.Confirm(m.ctx, projectName, t.ID, &t.Attempt)
	if err != nil {
		m.Fatalf("confirm: %v", err)
	}
	if done.Status == "proceed" && (m.model.modeOf(t.Phone) != "agent" || m.silenced[t.ID] != nil) {
		m.Fatalf("an effect of a turn that a person silenced: %t, is confirmed in a conversation that is %s", m.silenced[t.ID] != nil, m.model.modeOf(t.Phone))
	}
	m.event("confirm: " + done.Status)
}

// did deals with the answer to a person's action, and tells whether it was carried out.
func (m *machine) did(what string, err error) bool {
	if err != nil && postgres.Classify(err) != postgres.Refused {
		m.Fatalf("%s: %v", what, err)
	}
	m.acting.audited = err == nil
	if err == nil {
		m.event(what)
	}
	return err == nil
}

// phonesIn are the conversations that are in one of the modes.
func (m *machine) phonesIn(modes ...string) []string {
	return slices.DeleteFunc(slices.Clone(phones), func(phone string) bool { return !slices.Contains(modes, m.model.modeOf(phone)) })
}

// phonesWaiting are the conversations in which something waits.
func (m *machine) phonesWaiting() []string {
	return slices.DeleteFunc(slices.Clone(phones), func(phone string) bool { return len(m.model.conversation(phone).waiting) == 0 })
}

// takeFloor is a person who takes a conversation over, or suspends it.
func (m *machine) takeFloor() {
	m.silence(pick(m, "phone", m.phonesIn("agent", "human")))
}

func (m *machine) silence(phone string) {
	if rapid.Bool().Draw(m.T, "suspend") {
		_, err := m.people.Suspend(m.ctx, projectName, phone, "rita", "checking")
		if m.did("suspend", err) {
			m.model.suspend(phone)
		}
		return
	}
	_, err := m.people.Takeover(m.ctx, projectName, phone, nil, "rita", "")
	if m.did("take over", err) {
		m.model.takeover(phone, m.model.now+takeoverSecond, m.ignores())
	}
}

// giveFloor is a person who gives a conversation back to the agent.
func (m *machine) giveFloor() {
	phone := pick(m, "phone", m.phonesIn("human", "suspended"))
	if m.model.modeOf(phone) == "suspended" {
		m.resumePhone(phone, pick(m, "waiting", []string{"answer", "discard"}))
		return
	}
	_, err := m.people.Release(m.ctx, projectName, phone, "rita")
	if m.did("release", err) {
		m.model.conversation(phone).mode = "agent"
	}
}

func (m *machine) resumePhone(phone, waiting string) {
	_, err := m.people.Resume(m.ctx, projectName, phone, waiting, "rita")
	if !m.did("resume, "+waiting, err) {
		return
	}
	c := m.model.conversation(phone)
	c.mode = "agent"
	if waiting == "discard" {
		m.model.ignoreWaiting(phone)
	} else if len(c.waiting) > 0 {
		c.dueNow = true
	}
}

func (m *machine) flush() {
	phone := pick(m, "phone", m.phonesWaiting())
	c := m.model.conversation(phone)
	_, err := m.people.Flush(m.ctx, projectName, phone, "rita")
	if m.did("flush", err) {
		c.dueNow = true
	}
}

// resolve is a person who looked: about a part she knows the truth, about an agent's effect she says what she thinks.
func (m *machine) resolve() {
	t := pick(m, "turn", m.before.in("unknown"))
	outcome := pick(m, "outcome", []string{"done", "not_done"})
	if part := t.doubtful(); part > 0 {
		outcome = map[bool]string{true: "done", false: "not_done"}[m.outside.happened(t.ID, part) > 0]
	}
	m.resolveAs(t, outcome)
}

func (m *machine) resolveAs(t *turnRow, outcome string) {
	_, err := m.people.Resolve(m.ctx, projectName, t.ID, outcome, "rita", "looked")
	m.acting.runs = true
	m.did("resolve "+t.Stage+", "+outcome, err)
}

func (m *machine) redrive() {
	t := pick(m, "turn", m.before.in("dead"))
	_, err := m.people.Redrive(m.ctx, projectName, t.ID, "rita", "agent is back", rapid.Bool().Draw(m.T, "forced"))
	if m.did("redrive", err) {
		m.acting.redriven = t.ID
		delete(m.silenced, t.ID)
		for _, text := range t.Texts {
			m.redriven[text] = true
		}
	}
}

func (m *machine) discard() {
	t := pick(m, "turn", m.before.in(append([]string{"dead"}, unfinished...)...))
	_, err := m.people.Discard(m.ctx, projectName, t.ID, "rita", "no use")
	m.did("discard", err)
}

func (m *machine) erase() {
	phone := m.drawPhone()
	for _, t := range m.before.Turns {
		if t.Phone == phone {
			m.erasedTurns[t.ID] = true
			m.inFlight(m.leftBehind, &t)
			for _, p := range t.Parts {
				m.model.known[providerID(t.ID, p.Part)] = m.model.known[providerID(t.ID, p.Part)] || m.knownToUs(t.ID, p.Part)
			}
			m.event("erase with a turn " + map[bool]string{true: "open", false: "over"}[t.Open])
		}
	}
	_, err := m.people.Erase(m.ctx, projectName, phone, "rita")
	if m.did("erase", err) {
		m.model.erase(phone)
		m.forgotten(phone)
	}
}
