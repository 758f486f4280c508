package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"fila/internal/soak/history"
)

// patient writes in bursts, and sends every message until it is acknowledged.
type patient struct {
	*soak
	dice           *dice
	project, phone string
	written        int
}

// message is what goes over the wire.
type message struct {
	ID    string `json:"id"`
	Phone string `json:"phone"`
	Text  string `json:"text"`
}

// startPatients lets them write until writing ends; what they have begun to send they send to its end, as long as they live.
// In every project there is one more who writes through another program.
func (s *soak) startPatients(writing, living context.Context, group *sync.WaitGroup) {
	for i, project := range slices.Sorted(maps.Keys(clinics)) {
		for j := range patients + 1 {
			p := &patient{soak: s, dice: newDice(s.seed, uint64(100+10*i+j)), project: project, phone: fmt.Sprintf("553199%d000%02d", 900+i, j)}
			if j == patients {
				group.Go(func() { p.writeElsewhere(writing, living) })
				continue
			}
			group.Go(func() { p.write(writing, living) })
		}
	}
}

func (p *patient) write(writing, living context.Context) {
	for pause(writing, p.dice.between(100*time.Millisecond, 1500*time.Millisecond)) {
		burst := 1 + p.dice.below(5)
		switch roll := p.dice.roll(); {
		case roll < 0.1:
			p.deliver(living, p.next(burst)...)
		case roll < 0.2:
			p.together(living, burst)
		case roll < 0.25:
			p.oneByOne(writing, living, burst+5, 100*time.Millisecond)
		default:
			p.oneByOne(writing, living, burst, 300*time.Millisecond)
		}
		if p.dice.roll() < 0.3 {
			p.deliver(living, p.message(1+p.dice.below(p.written)))
		}
	}
}

func (p *patient) oneByOne(writing, living context.Context, burst int, most time.Duration) {
	for range burst {
		p.deliver(living, p.next(1)...)
		if !pause(writing, p.dice.between(0, most)) {
			return
		}
	}
}

func (p *patient) together(ctx context.Context, burst int) {
	var group sync.WaitGroup
	for _, m := range p.next(burst) {
		group.Go(func() { p.deliver(ctx, m) })
	}
	group.Wait()
}

func (p *patient) next(n int) []message {
	var messages []message
	for range n {
		p.written++
		messages = append(messages, p.message(p.written))
	}
	return messages
}

func (p *patient) message(number int) message {
	id := fmt.Sprintf("%s-%d", p.phone, number)
	return message{ID: id, Phone: p.phone, Text: "text of " + id}
}

// deliver sends the messages in one request, again and again until they are acknowledged.
func (p *patient) deliver(ctx context.Context, messages ...message) {
	for {
		from := p.record.now()
		status, body := p.entry.ask(ctx, http.MethodPost, "/v1/projects/"+p.project+"/messages", messages)
		words := p.words(status, body, len(messages))
		span := history.Span{Invoke: from, Return: p.record.now()}
		for i, m := range messages {
			note(p.record, posts, history.Post{Span: span, Project: p.project, Phone: p.phone, ID: m.ID, Text: m.Text, Status: words[i]})
		}
		if words[0] != "" {
			return
		}
		p.tally.count("sent again")
		if !pause(ctx, p.dice.between(20*time.Millisecond, 150*time.Millisecond)) {
			return
		}
	}
}

// words are what the answer says of each message, all empty where they are to be sent again.
func (p *patient) words(status int, body []byte, n int) []string {
	words := make([]string, n)
	switch status {
	case http.StatusAccepted:
	case 0, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return words
	default:
		p.Errorf("messages were answered %d: %s", status, body)
		return words
	}
	var read struct {
		Messages []struct {
			Status string `json:"status"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &read); err != nil || len(read.Messages) != n {
		p.Errorf("%d messages were acknowledged with %s", n, body)
		return words
	}
	for i, m := range read.Messages {
		words[i] = m.Status
	}
	return words
}

// writeElsewhere inserts rows as a program does that has never heard of the service.
func (p *patient) writeElsewhere(writing, living context.Context) {
	for pause(writing, p.dice.between(200*time.Millisecond, 1500*time.Millisecond)) {
		for range 1 + p.dice.below(4) {
			p.insert(living, p.next(1)[0])
		}
		if p.dice.roll() < 0.3 {
			p.insert(living, p.message(1+p.dice.below(p.written)))
		}
	}
}

func (p *patient) insert(ctx context.Context, m message) {
	table := pgx.Identifier{"fila_mensagens_" + p.project}.Sanitize()
	for {
		_, err := p.pool.Exec(ctx, "INSERT INTO "+table+" (telefone, mensagem, id_mensagem) VALUES ($1, $2, $3)", p.phone, m.Text, m.ID)
		if err == nil {
			note(p.record, inserts, history.Insert{Project: p.project, Phone: p.phone, ID: m.ID, Text: m.Text})
			return
		}
		if !pause(ctx, 50*time.Millisecond) {
			return
		}
	}
}
