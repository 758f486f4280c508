package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"fila/internal/ledger"
)

// writeTurn shows a whole turn to a person.
func writeTurn(w io.Writer, p palette, t ledger.Turn, now time.Time) {
	fmt.Fprintf(w, "%s %s\n", p.paint(bold, "turn "+t.ID), p.state(t.State))
	field(w, "project", t.Project)
	field(w, "phone", t.Phone)
	field(w, "fired by", t.FiredBy)
	field(w, "attempt", fmt.Sprint(t.Attempt))
	field(w, "instance", orDash(t.Instance))
	field(w, "reason", harmless(orDash(t.Reason)))
	if t.SupersededBy != nil {
		field(w, "superseded by", "turn "+*t.SupersededBy)
	}
	writeMoments(w, t)
	if t.KeptUntil != nil {
		field(w, "kept until", clockTime(*t.KeptUntil)+", "+age(max(0, t.KeptUntil.Sub(now)))+" left")
	}
	section(w, p, "messages")
	for _, m := range t.Messages {
		fmt.Fprintf(w, "  %s  %s%s\n", clockTime(m.ReceivedAt), ofKind(m.Kind), indented(m.Text))
	}
	writeReply(w, p, t)
	writeErrors(w, p, t.Errors)
}

func writeMoments(w io.Writer, t ledger.Turn) {
	for _, m := range []struct {
		name string
		at   *time.Time
	}{
		{"first message", &t.FirstAt},
		{"due", &t.DueAt},
		{"drained", &t.DrainedAt},
		{"replied", t.RepliedAt},
		{"next attempt", t.NextAttemptAt},
		{"finished", t.FinishedAt},
	} {
		if m.at != nil {
			field(w, m.name, clockTime(*m.at))
		}
	}
}

func writeReply(w io.Writer, p palette, t ledger.Turn) {
	if t.Reply != nil {
		section(w, p, "reply")
		fmt.Fprintf(w, "  %s\n", indented(*t.Reply))
	}
	if len(t.Parts) == 0 {
		return
	}
	section(w, p, "parts")
	for _, part := range t.Parts {
		name := fmt.Sprintf("%d of %d", part.Part, lastPart(t))
		if part.Part == 0 {
			name = "fallback"
		}
		fmt.Fprintf(w, "  %s  %s, %s, provider's id %s\n", name, part.State, counted(part.Attempts, "attempt", "attempts"), orDash(part.ProviderID))
	}
}

func lastPart(t ledger.Turn) int { return t.Parts[len(t.Parts)-1].Part }

func writeErrors(w io.Writer, p palette, errors []ledger.Error) {
	if len(errors) == 0 {
		return
	}
	section(w, p, "errors")
	for _, e := range errors {
		fmt.Fprintf(w, "  %s  attempt %d, %s: %s\n", clockTime(e.At), e.Attempt, e.Stage, indented(e.Error))
	}
}

func section(w io.Writer, p palette, title string) { fmt.Fprintln(w, p.paint(bold, title)) }

func field(w io.Writer, name, text string) { fmt.Fprintf(w, "  %-14s %s\n", name, text) }

// clockTime is a moment in UTC; the database keeps microseconds, people need thousandths.
func clockTime(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05.000Z") }

func ofKind(kind string) string {
	if kind == "text" {
		return ""
	}
	return "(" + kind + ") "
}

// indented keeps the further lines of a text under its first.
func indented(text string) string { return strings.ReplaceAll(harmless(text), "\n", "\n  ") }
