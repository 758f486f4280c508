package main

import (
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	t.Parallel()
	table := newTable(palette{}, left("NAME"), right("NUMBER"))
	table.row("clínica", "7")
	table.row("é", "1234567")
	var out strings.Builder
	table.write(&out, "nothing")
	if want := "NAME      NUMBER\nclínica        7\né        1234567\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestTableIsAlignedUnderColours(t *testing.T) {
	t.Parallel()
	table := newTable(palette{colors: true}, left("STATE"), left("REASON"))
	table.row(table.state("dead"), "x")
	table.row(table.state("discarded"), "y")
	var out strings.Builder
	table.write(&out, "nothing")
	if !strings.Contains(out.String(), "\x1b[31mdead\x1b[0m       x\n") || !strings.Contains(out.String(), "discarded  y\n") {
		t.Errorf("got %q", out.String())
	}
}

func TestEmptyTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	newTable(palette{}, left("NAME")).write(&out, "Nothing here.")
	if out.String() != "Nothing here.\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 3240 * time.Millisecond: "3.2s", 9960 * time.Millisecond: "9s", 42 * time.Second: "42s",
		4*time.Minute + 59*time.Second: "4m", 2 * time.Hour: "2h", 47 * time.Hour: "47h", 5 * 24 * time.Hour: "5d",
	} {
		if got := age(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestPaletteOffTerminal(t *testing.T) {
	t.Parallel()
	c := &cli{stdout: &strings.Builder{}, env: func(string) (string, bool) { return "", false }}
	if c.palette().colors {
		t.Error("colours without a terminal")
	}
}

func TestHarmless(t *testing.T) {
	t.Parallel()
	if got := harmless("é\x1b[31m\r\n\u009bx\x00"); got != "é [31m \n x " {
		t.Errorf("got %q", got)
	}
}
