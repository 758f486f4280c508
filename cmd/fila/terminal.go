package main

import (
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/mattn/go-isatty"
)

// isTerminal says whether a person looks at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// color is a code of ECMA-48's.
type color string

const (
	bold   color = "1"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
)

// palette paints, or not.
type palette struct{ colors bool }

// palette paints on a terminal, where colours are wanted.
func (c *cli) palette() palette { return palette{colors: !c.plain() && isTerminal(c.stdout)} }

// plain says that colours are not wanted, or that the terminal knows none.
func (c *cli) plain() bool { return c.variable("NO_COLOR") != "" || c.variable("TERM") == "dumb" }

func (p palette) paint(with color, text string) string {
	if !p.colors || text == "" {
		return text
	}
	return "\x1b[" + string(with) + "m" + text + "\x1b[0m"
}

// alarm paints a number that should be 0 and is not.
func (p palette) alarm(with color, number string) string {
	if number == "0" {
		return number
	}
	return p.paint(with, number)
}

// state paints a turn's state by what it asks of people.
func (p palette) state(name string) string {
	switch name {
	case "dead":
		return p.paint(red, name)
	case "unknown", "retrying":
		return p.paint(yellow, name)
	case "done":
		return p.paint(green, name)
	}
	return name
}

var painting = regexp.MustCompile("\x1b\\[[0-9;]*m")

func unpainted(text string) string { return painting.ReplaceAllString(text, "") }

// harmless keeps what patients wrote from steering the terminal: control characters become spaces, but for line breaks.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return ' '
		}
		return r
	}, text)
}
