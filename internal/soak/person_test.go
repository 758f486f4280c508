package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// person intervenes now and then, and says truthfully how unknown outcomes turned out.
type person struct {
	*soak
	dice  *dice
	quiet atomic.Bool
}

func newPerson(s *soak) *person { return &person{soak: s, dice: newDice(s.seed, 4)} }

// calm makes the person give every conversation back and start nothing new.
func (p *person) calm() { p.quiet.Store(true) }

func (p *person) intervene(ctx context.Context) {
	for pause(ctx, p.dice.between(100*time.Millisecond, 400*time.Millisecond)) {
		if p.quiet.Load() {
			p.giveBack(ctx)
			continue
		}
		projects := slices.Sorted(maps.Keys(clinics))
		i := p.dice.below(len(projects))
		phone := fmt.Sprintf("553199%d000%02d", 900+i, p.dice.below(patients+1))
		p.act(ctx, projects[i], phone, p.dice.roll())
	}
}

func (p *person) act(ctx context.Context, project, phone string, roll float64) {
	switch {
	case roll < 0.15:
		p.ask(ctx, project, phone, "takeover", map[string]any{"by": "ana", "minutes": 0.005 + 0.03*p.dice.roll()})
	case roll < 0.25:
		p.ask(ctx, project, phone, "release", map[string]any{"by": "ana"})
	case roll < 0.35:
		p.ask(ctx, project, phone, "suspend", map[string]any{"by": "ana", "reason": "a look"})
		if pause(ctx, p.dice.between(0, 500*time.Millisecond)) {
			waiting := "answer"
			if p.dice.roll() < 0.3 {
				waiting = "discard"
			}
			p.ask(ctx, project, phone, "resume", map[string]any{"by": "ana", "waiting": waiting})
		}
	case roll < 0.45:
		p.ask(ctx, project, phone, "typing", map[string]any{})
	default:
		p.ask(ctx, project, phone, "flush", map[string]any{"by": "ana"})
	}
}

// ask asks until there is an answer.
func (p *person) ask(ctx context.Context, project, phone, action string, body any) {
	path := "/v1/projects/" + project + "/conversations/" + phone + "/" + action
	for {
		status, text := p.entry.ask(ctx, http.MethodPost, path, body)
		switch {
		case status >= 200 && status < 300:
			p.tally.count("person: " + action)
			return
		case status == http.StatusConflict || status == http.StatusNotFound:
			return
		case status != 0 && status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests:
			p.Errorf("%s was answered %d: %s", action, status, text)
			return
		}
		if !pause(ctx, 50*time.Millisecond) {
			return
		}
	}
}

// giveBack ends whatever a person, or a handoff, has begun.
func (p *person) giveBack(ctx context.Context) {
	for _, project := range slices.Sorted(maps.Keys(clinics)) {
		for mode, action := range map[string]string{"suspended": "resume", "human": "release"} {
			var phones []string
			err := p.pool.QueryRow(ctx,
				`SELECT coalesce(array_agg(phone), '{}') FROM conversations WHERE project = $1 AND fila_mode(mode, until) = $2`, project, mode).Scan(&phones)
			if err != nil {
				return
			}
			for _, phone := range phones {
				p.ask(ctx, project, phone, action, map[string]any{"by": "ana", "waiting": "answer"})
			}
		}
	}
}

// resolve looks at every turn whose outcome is unknown, a moment after it was first seen so: by then no call of it is on the
// way any more.
func (p *person) resolve(ctx context.Context) {
	seen := map[string]time.Time{}
	for pause(ctx, 150*time.Millisecond) {
		for project, rules := range clinics {
			if rules.Once {
				p.resolveAll(ctx, project, seen)
			}
		}
	}
}

func (p *person) resolveAll(ctx context.Context, project string, seen map[string]time.Time) {
	status, body := p.entry.ask(ctx, http.MethodGet, "/v1/projects/"+project+"/turns?state=unknown", nil)
	if status != http.StatusOK {
		return
	}
	var page struct {
		Turns []unknownTurn `json:"turns"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		p.Errorf("the list of turns cannot be read: %v", err)
		return
	}
	for _, t := range page.Turns {
		at := fmt.Sprintf("%s/%d", t.ID, t.Attempt)
		if _, known := seen[at]; !known {
			seen[at] = time.Now()
		}
		if time.Since(seen[at]) > 400*time.Millisecond {
			p.resolveOne(ctx, t)
		}
	}
}

// unknownTurn is what the person reads of a turn.
type unknownTurn struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
	Parts   []struct {
		Part  int    `json:"part"`
		State string `json:"state"`
	} `json:"parts"`
}

func (p *person) resolveOne(ctx context.Context, t unknownTurn) {
	outcome := "not_done"
	for _, part := range t.Parts {
		if part.State != "unknown" {
			continue
		}
		busy, got := p.channel.know(fmt.Sprintf("%s.%d", t.ID, part.Part))
		if busy {
			return
		}
		if got {
			outcome = "done"
		}
	}
	// Not over HTTP: a request that a frozen instance carries out later would speak of an outcome that is no longer so.
	if _, err := p.pool.Exec(ctx, `SELECT fila_resolve($1, $2, 'ana', 'the patient was asked')`, t.ID, outcome); err == nil {
		p.tally.count("person: resolve " + outcome)
	}
}
