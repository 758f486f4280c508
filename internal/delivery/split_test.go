package delivery

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	const doctor = "👩\u200d⚕\ufe0f" // one grapheme of four code points
	tests := map[string]struct {
		replies []string
		max     int
		want    []string
	}{
		"nothing":                     {nil, 10, nil},
		"white space alone":           {[]string{"", " \n\t", "\u00a0", strings.Repeat(" ", 30)}, 10, nil},
		"short replies stay whole":    {[]string{" oi \n", "tudo\n\nbem"}, 10, []string{" oi \n", "tudo\n\nbem"}},
		"no limit":                    {[]string{strings.Repeat("a", 9000)}, 0, []string{strings.Repeat("a", 9000)}},
		"just the limit":              {[]string{"1234567890"}, 10, []string{"1234567890"}},
		"code points, not bytes":      {[]string{"áéíóúâêôãõ"}, 10, []string{"áéíóúâêôãõ"}},
		"paragraph before line":       {[]string{"um\n\ndois\ntrês x"}, 12, []string{"um", "dois\ntrês x"}},
		"blank line with white space": {[]string{"um\r\n \t\r\ndois\r\ntrês x"}, 14, []string{"um", "dois\r\ntrês x"}},
		"line before sentence":        {[]string{"um\ndois. três"}, 11, []string{"um", "dois. três"}},
		"sentence before space":       {[]string{"Um dois. Três quatro"}, 13, []string{"Um dois.", "Três quatro"}},
		"sentence in quotes":          {[]string{"Ela: “vem!” Diga que sim"}, 17, []string{"Ela: “vem!”", "Diga que sim"}},
		"space":                       {[]string{"queria saber sobre"}, 15, []string{"queria saber", "sobre"}},
		"space just behind the limit": {[]string{"queria saber"}, 6, []string{"queria", "saber"}},
		"a word too long":             {[]string{"ab 1234567890123 cd"}, 10, []string{"ab", "1234567890", "123 cd"}},
		"grapheme":                    {[]string{strings.Repeat("a", 8) + doctor + "b"}, 10, []string{"aaaaaaaa", doctor + "b"}},
		"flags in pairs":              {[]string{"🇧🇷🇵🇹🇦🇴"}, 3, []string{"🇧🇷", "🇵🇹", "🇦🇴"}},
		"accents apart from letters":  {[]string{"e\u0301e\u0301e\u0301"}, 3, []string{"e\u0301", "e\u0301", "e\u0301"}},
		"a grapheme over the limit":   {[]string{"a" + doctor + doctor + "b"}, 3, []string{"a", doctor, doctor, "b"}},
		"white space at the end":      {[]string{"1234567890 \n\n "}, 10, []string{"1234567890"}},
		"white space over the limit":  {[]string{"a" + strings.Repeat(" ", 40) + "b"}, 10, []string{"a", "b"}},
		"several replies":             {[]string{"um dois", "", "três"}, 4, []string{"um", "dois", "três"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Split(tt.replies, tt.max); !slices.Equal(got, tt.want) {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

// At a megabyte anything worse than linear would not end within the test's time.
func TestSplitOfAMegabyte(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"letters": "a", "emoji": "👩\u200d⚕\ufe0f", "spaces": " ", "sentences": "Bom dia! ", "paragraphs": "a\n\n", "accents": "\u0301",
		"early cuts": "a\n\nb. c " + strings.Repeat("x", 4090),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := "x" + strings.Repeat(unit, 1<<20/len(unit)) + "y"
			for _, most := range []int{20, 4096} {
				parts := Split([]string{reply}, most)
				if visible(strings.Join(parts, "")) != visible(reply) {
					t.Errorf("at most %d: content changed", most)
				}
			}
		})
	}
}

func TestSplitKeepsEverything(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{" ", "\n", "\n\n", "\r\n", "\t", "\u00a0", ". ", "! ", "a", "ção", "palavra", "🦷", "👩\u200d⚕\ufe0f", "🇧🇷", "🇧", "e\u0301", "\u0301", "\u200d", "क्ष", "각"}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		reply := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), "")
		most := rapid.IntRange(1, 30).Draw(t, "most")
		check(t, reply, most, Split([]string{reply}, most))
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("Bom dia! Temos vagas.\n\nQual prefere?", 10)
	f.Add("a👩\u200d⚕\ufe0f🇧🇷e\u0301 \u0301\r\n\xff", 2)
	f.Fuzz(func(t *testing.T, reply string, most int) {
		reply = strings.ToValidUTF8(reply, "\ufffd")
		most = max(1, most%5000)
		check(t, reply, most, Split([]string{reply}, most))
	})
}

// check holds the parts against the reply: nothing lost but white space, nothing too long, no grapheme cut.
func check(t interface{ Errorf(string, ...any) }, reply string, most int, parts []string) {
	if visible(reply) != visible(strings.Join(parts, "")) {
		t.Errorf("content changed: %.200q became %.200q", reply, parts)
		return
	}
	boundaries := boundaries(reply)
	at := 0
	for _, part := range parts {
		if strings.TrimSpace(part) == "" {
			t.Errorf("white space alone: %q", part)
		}
		if chars(part) > most && uniseg.GraphemeClusterCount(part) > 1 {
			t.Errorf("over %d code points: %.200q", most, part)
		}
		for !strings.HasPrefix(reply[at:], part) {
			at++
		}
		if !boundaries[at] || !boundaries[at+len(part)] {
			t.Errorf("a grapheme is cut around %.200q", part)
		}
		at += len(part)
	}
}

func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

func boundaries(text string) []bool {
	at := make([]bool, len(text)+1)
	at[0] = true
	for clusters := uniseg.NewGraphemes(text); clusters.Next(); {
		_, end := clusters.Positions()
		at[end] = true
	}
	return at
}
