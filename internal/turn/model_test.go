package turn_test

import "slices"

// Time in the model is in seconds and stands still but for the action that lets it pass; a case takes far less than one of its
// windows in real time.
const (
	windowSeconds  = 1000
	ceilingSeconds = 3000
	leaseSeconds   = 300
	takeoverSecond = 3600
)

// model is what must be so: lists of messages, and who has the floor.
type model struct {
	now int
	// fate is what became of every message by its text, which is unique.
	fate map[string]string
	// known holds the ids that have been seen, also those of erased messages.
	known map[string]bool
	// foreign are the rows of another program that nobody has taken in yet.
	foreign []message
	phones  map[string]*patient
}

// message is one text of a patient.
type message struct {
	phone, id, text string
	// seq orders messages as they came into the database, at is when that was.
	seq, at int
	// superseded: it came back from a turn.
	superseded bool
}

// Fates of a message.
const (
	kept    = "kept"    // it waits, or one turn has it
	ignored = "ignored" // nobody answers it
	erased  = "erased"  // it was forgotten
	dropped = "dropped" // its id was known
)

// patient is one conversation.
type patient struct {
	mode  string
	until int
	// order is every message that was accepted and not ignored since, waiting what of it no turn has; both as they came.
	order, waiting []message
	dueNow         bool
}

func newModel() *model {
	return &model{fate: map[string]string{}, known: map[string]bool{}, phones: map[string]*patient{}}
}

func (m *model) conversation(phone string) *patient {
	c, ok := m.phones[phone]
	if !ok {
		c = &patient{mode: "agent"}
		m.phones[phone] = c
	}
	return c
}

// modeOf is the mode that counts now.
func (m *model) modeOf(phone string) string {
	c := m.conversation(phone)
	if c.mode == "human" && c.until <= m.now {
		return "agent"
	}
	return c.mode
}

// accept takes one message, and says what becomes of it.
func (m *model) accept(msg message, ignoreUnderHuman bool) string {
	if msg.id != "" && m.known[msg.id] {
		m.fate[msg.text] = dropped
		return "duplicate"
	}
	if msg.id != "" {
		m.known[msg.id] = true
	}
	if m.modeOf(msg.phone) == "human" && ignoreUnderHuman {
		m.fate[msg.text] = ignored
		return "ignored"
	}
	c := m.conversation(msg.phone)
	m.fate[msg.text] = kept
	c.order = inserted(c.order, msg)
	c.waiting = inserted(c.waiting, msg)
	return "queued"
}

func inserted(list []message, msg message) []message {
	place, _ := slices.BinarySearchFunc(list, msg, func(a, b message) int { return a.seq - b.seq })
	return slices.Insert(list, place, msg)
}

// adopt takes in what another program inserted for the phones, and says what became of each.
func (m *model) adopt(asked []string, ignoreUnderHuman bool) (became []string) {
	m.foreign = slices.DeleteFunc(m.foreign, func(msg message) bool {
		if !slices.Contains(asked, msg.phone) {
			return false
		}
		became = append(became, m.accept(msg, ignoreUnderHuman))
		return true
	})
	return became
}

// ignoreWaiting settles what waits.
func (m *model) ignoreWaiting(phone string) {
	c := m.conversation(phone)
	for _, msg := range c.waiting {
		m.fate[msg.text] = ignored
		c.order = slices.DeleteFunc(c.order, func(o message) bool { return o.text == msg.text })
	}
	c.waiting, c.dueNow = nil, false
}

// takeover gives the conversation to a person.
func (m *model) takeover(phone string, until int, ignoreUnderHuman bool) {
	c := m.conversation(phone)
	c.mode, c.until = "human", until
	if ignoreUnderHuman {
		m.ignoreWaiting(phone)
	}
}

func (m *model) suspend(phone string) {
	c := m.conversation(phone)
	c.mode, c.dueNow = "suspended", false
}

// due tells whether the burst is due, which of it a drain takes, and whether more is due right behind it.
func (m *model) due(phone string, maxMessages int) (due bool, taken, rest []message, more bool) {
	c := m.conversation(phone)
	var back, fresh []message
	for _, msg := range c.waiting {
		if msg.superseded {
			back = append(back, msg)
		} else {
			fresh = append(fresh, msg)
		}
	}
	judged := fresh
	if len(fresh) == 0 {
		judged = back
	}
	if len(judged) == 0 {
		return false, nil, nil, false
	}
	first, last := judged[0].at, judged[0].at
	for _, msg := range judged {
		first, last = min(first, msg.at), max(last, msg.at)
	}
	if len(fresh) == 0 {
		last = first
	}
	due = c.dueNow || m.now >= last+windowSeconds || m.now >= first+ceilingSeconds || len(fresh) >= maxMessages
	cut := min(len(fresh), maxMessages)
	taken = slices.Concat(back, fresh[:cut])
	slices.SortFunc(taken, func(a, b message) int { return a.seq - b.seq })
	return due, taken, slices.Clone(fresh[cut:]), cut < len(fresh)
}

// drained moves what a drain took out of the queue.
func (m *model) drained(phone string, rest []message, more bool) {
	c := m.conversation(phone)
	c.waiting, c.dueNow = rest, more
}

// cameBack puts the messages of a superseded turn in front of what waits.
func (m *model) cameBack(phone string, texts []string) {
	c := m.conversation(phone)
	for _, msg := range c.order {
		if slices.Contains(texts, msg.text) {
			msg.superseded = true
			c.waiting = inserted(c.waiting, msg)
		}
	}
}

// erase forgets the phone; what another program inserted for it goes as well, and its id stays known.
func (m *model) erase(phone string) {
	m.foreign = slices.DeleteFunc(m.foreign, func(msg message) bool {
		if msg.phone == phone && msg.id != "" {
			m.known[msg.id] = true
		}
		if msg.phone == phone {
			m.fate[msg.text] = erased
		}
		return msg.phone == phone
	})
	for _, msg := range m.conversation(phone).order {
		m.fate[msg.text] = erased
	}
	delete(m.phones, phone)
}

func textsOf(messages []message) (texts []string) {
	for _, msg := range messages {
		texts = append(texts, msg.text)
	}
	return texts
}
