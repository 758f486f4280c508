package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// column is one of a table's.
type column struct {
	title string
	right bool
}

func left(title string) column  { return column{title: title} }
func right(title string) column { return column{title: title, right: true} }

// table is text in aligned columns. Cells may be painted: colours take no room.
type table struct {
	palette
	columns []column
	rows    [][]string
}

func newTable(p palette, columns ...column) *table { return &table{palette: p, columns: columns} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, or the sentence when it has no rows.
func (t *table) write(w io.Writer, empty string) {
	if len(t.rows) == 0 {
		fmt.Fprintln(w, empty)
		return
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	widths := t.widths(append([][]string{titles}, t.rows...))
	fmt.Fprintln(w, t.paint(bold, t.line(titles, widths)))
	for _, cells := range t.rows {
		fmt.Fprintln(w, t.line(cells, widths))
	}
}

func (t *table) widths(rows [][]string) []int {
	widths := make([]int, len(t.columns))
	for _, cells := range rows {
		for i, cell := range cells {
			widths[i] = max(widths[i], width(cell))
		}
	}
	return widths
}

func (t *table) line(cells []string, widths []int) string {
	padded := make([]string, len(cells))
	for i, cell := range cells {
		space := strings.Repeat(" ", widths[i]-width(cell))
		if t.columns[i].right {
			padded[i] = space + cell
		} else {
			padded[i] = cell + space
		}
	}
	return strings.TrimRight(strings.Join(padded, "  "), " ")
}

// width is how many cells of a terminal a text takes.
func width(text string) int { return uniseg.StringWidth(unpainted(text)) }

// age is a duration as people say it: 3.2s, 42s, 4m, 2h, 5d.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// seconds is an age that may be absent.
func seconds(s *float64) string {
	if s == nil {
		return "-"
	}
	return age(time.Duration(*s * float64(time.Second)))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// orDash shows that a text is absent.
func orDash(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}
