package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fila/internal/pgtest"
)

func TestPushAnswersInOrder(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{})
	old := says("norte", 3, "old", "de ontem")
	old.Ignored = "too_old"
	c.want(c.push(says("norte", 2, "b", "um"), old, says("norte", 1, "a", "dois"), says("norte", 2, "b", "um"), says("norte", 1, "", "três")),
		"queued", "ignored too_old", "queued", "duplicate", "queued")
	c.want(c.waiting("norte"), "um", "dois", "três")
	if got := c.push(); len(got) != 0 {
		t.Errorf("no messages have the receipts %q", got)
	}
}

func TestPushKeepsWhatWasGiven(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{})
	at := time.Date(2026, 3, 1, 14, 30, 0, 123456000, time.UTC)
	m := says("norte", 1, "0042", "olá 👩‍⚕️ \\ ' \" \t\n")
	m.Kind, m.ContactName, m.SessionID, m.SentAt = "image", "Ana", "s-1", &at
	m.Media, m.Metadata = []byte(`{"url": "https://a/b"}`), []byte(`{"n": 12345678901234567890.5, "a": [null]}`)
	c.push(m)
	got := value[[]string](c, `SELECT ARRAY[projeto, id_mensagem, telefone, address, mensagem, kind, contact_name, session_id, media::text, metadata::text,
		to_char(sent_at AT TIME ZONE 'UTC', 'HH24:MI:SS.US'), registered::text] FROM fila_mensagens`)
	c.want(got, "norte", "0042", m.Phone, m.Address, m.Text, "image", "Ana", "s-1", string(m.Media), `{"a": [null], "n": 12345678901234567890.5}`,
		"14:30:00.123456", "true")
	c.push(says("norte", 1, "", "sem nada"))
	if n := value[int](c, `SELECT count(*)::integer FROM fila_mensagens WHERE mensagem = 'sem nada' AND id_mensagem = ''
		AND num_nulls(contact_name, session_id, media, metadata, sent_at) = 5`); n != 1 {
		t.Error("what was not given is there")
	}
}

func TestPushKnowsARepetition(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{})
	c.want(c.push(says("norte", 1, "a", "oi")), "queued")
	c.want(c.push(says("norte", 1, "a", "oi"), says("norte", 1, "b", "olá")), "duplicate", "queued")
	c.want(c.push(says("sul", 1, "a", "oi")), "queued") // the id of another project
	c.want(c.push(says("norte", 2, "b", "de outro telefone")), "duplicate")
	c.want(c.push(says("norte", 1, "", "oi"), says("norte", 1, "", "oi")), "queued", "queued")
	ignored := says("norte", 1, "c", "oi")
	ignored.Ignored = "team"
	c.want(c.push(ignored), "ignored team")
	c.want(c.push(says("norte", 1, "c", "oi")), "duplicate")
	c.want(c.waiting("norte"), "oi", "olá", "oi", "oi")
}

// TestTwins is one message that several instances of the service get at once.
func TestTwins(t *testing.T) {
	t.Parallel()
	first := setup(t, Options{Patience: time.Minute})
	instances := []*clinic{first, prepare(t, first.url, Options{Patience: time.Minute}).start(), prepare(t, first.url, Options{Patience: time.Minute}).start()}
	const rounds, messages = 20, 10
	var queued atomic.Int32
	var all sync.WaitGroup
	for round := range rounds {
		for i, c := range instances {
			all.Go(func() {
				var batch []Message
				for n := range messages {
					// Twins need not agree on the phone, nor arrive in one order.
					batch = append(batch, says("norte", (n*7+i)%4, fmt.Sprintf("%d-%d", round, (n+i*3)%messages), "oi"))
				}
				receipts, err := c.Push(t.Context(), batch)
				if err != nil {
					t.Error(err)
				}
				for _, r := range receipts {
					if r.Status == Queued {
						queued.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	if n := len(first.waiting("norte")); n != rounds*messages || int(queued.Load()) != n {
		t.Errorf("%d messages wait and %d were called queued, of %d", n, queued.Load(), rounds*messages)
	}
}

func TestFromMe(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{})
	mine := func(id, text string) Message {
		m := says("norte", 1, id, text)
		m.Ignored = FromMe
		return m
	}
	mode := func() string {
		return value[string](c, "SELECT coalesce((SELECT fila_mode(mode, until) FROM conversations WHERE project = 'norte'), 'none')")
	}
	c.push(says("norte", 1, "a", "oi"))
	c.exec("UPDATE conversations SET due_now_at = clock_timestamp(), due_now_by = 'flush'")
	id := value[int64](c, "SELECT turn_id FROM fila_drain('norte', (SELECT array_agg(phone) FROM conversations), 'i', 30)")
	c.exec("SELECT fila_reply('norte', $1, 1, 'Temos 14h', ARRAY['Temos 14h'], false, true, 'i', 30)", id)

	c.want(c.push(mine("out-0", "Temos 14h")), "ignored echo") // faster than the provider's answer
	c.exec("SELECT fila_sent($1, 1, 1, 'out-1', true)", id)
	c.want(c.push(mine("out-1", "outra forma do texto")), "ignored echo")
	if got := mode(); got != "agent" {
		t.Errorf("our own words changed the mode to %s", got)
	}
	c.push(says("norte", 1, "b", "mais uma"))
	c.want(c.push(mine("person", "Bom dia, aqui é a Ana")), "ignored from_me")
	if got := mode(); got != "human" {
		t.Errorf("a person wrote and the mode is %s", got)
	}
	c.want(c.waiting("norte"))
	c.want(c.push(says("norte", 1, "c", "obrigado")), "ignored human")
	c.push(mine("d", "e outra"), mine("e", "e mais uma"), mine("out-1", "outra forma do texto"))
	if n := value[int](c, "SELECT count(*) FROM audit WHERE action = 'takeover'"); n != 2 {
		t.Errorf("%d takeovers in the audit after one message and a batch of two, want 2", n)
	}
	c.want(value[[]string](c, "SELECT array_agg(message_id || ' ' || coalesce(reason, '') ORDER BY id) FROM receipts"),
		"a ", "out-0 echo", "out-1 echo", "b human", "person from_me", "c human", "d from_me", "e from_me")
}

func TestArrayIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{})
	bad := says("norte", 2, "bad", "oi")
	bad.Metadata = []byte(`{"a":"\u0000"}`)
	_, err := c.Push(t.Context(), []Message{says("norte", 1, "a", "oi"), bad, says("norte", 3, "b", "oi")})
	var invalid *InvalidError
	if !errors.As(err, &invalid) || invalid.Code != "22P05" || !strings.Contains(err.Error(), "22P05") {
		t.Errorf("got %v", err)
	}
	if n := c.stored(); n != 0 {
		t.Errorf("%d rows of it are stored", n)
	}
}

// TestOneBadRequest refuses alone what shares a batch with others.
func TestOneBadRequest(t *testing.T) {
	t.Parallel()
	c := prepare(t, pgtest.New(t), Options{Writers: 1, Patience: time.Minute})
	var requests [][]Message
	refused := map[int]string{3: "22P05", 11: "22P02", 17: "22021", 18: "FI404", 30: "22003"}
	for n := range 40 {
		m := says("norte", n, fmt.Sprint(n), fmt.Sprintf("texto %02d", n))
		switch refused[n] {
		case "22P05":
			m.Metadata = []byte(`{"a":"\u0000"}`)
		case "22P02":
			m.Metadata = []byte(`{"a":`)
		case "22021":
			m.Text = "nul \x00"
		case "FI404":
			m.Project = "nobody"
		case "22003":
			m.Metadata = []byte(`{"a":1e400000}`)
		}
		requests = append(requests, []Message{m})
	}
	answers := c.gather(requests...)
	c.start()
	for n, a := range answers {
		receipts, err := a.wait()
		var invalid *InvalidError
		if code := refused[n]; code == "" && (err != nil || receipts[0].Status != Queued) {
			t.Errorf("request %d: %v, %v", n, receipts, err)
		} else if code != "" && (!errors.As(err, &invalid) || invalid.Code != code) {
			t.Errorf("request %d: %v, want %s", n, err, code)
		}
	}
	if texts := c.waiting("norte"); len(texts) != 40-len(refused) || !slices.IsSorted(texts) {
		t.Errorf("what waits is %q", texts)
	}
}

// TestOurMistakeLosesNothing: a message that the schema does not take because of us may come again.
func TestOurMistakeLosesNothing(t *testing.T) {
	t.Parallel()
	c := setup(t, Options{})
	c.exec("ALTER TABLE receipts RENAME COLUMN reason TO cause")
	if _, err := c.Push(t.Context(), []Message{says("norte", 1, "a", "oi")}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	c.exec("ALTER TABLE receipts RENAME COLUMN cause TO reason")
	c.want(c.push(says("norte", 1, "a", "oi")), "queued")
}
