package delivery

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Split cuts replies, which are valid UTF-8, into the parts that are sent. Every reply is at least one part, unless it is nothing but white space.
// A reply of more than maxChars code points is cut at the last paragraph that fits, else at the last line, sentence or
// space, else between two graphemes; a grapheme that is longer by itself is a part of its own. Only white space at a cut, or
// around a reply that is cut, is lost. With maxChars below 1 nothing is cut. The time is linear in the length.
func Split(replies []string, maxChars int) []string {
	var parts []string
	for _, reply := range replies {
		if maxChars < 1 || chars(reply) <= maxChars {
			if strings.TrimSpace(reply) != "" {
				parts = append(parts, reply)
			}
			continue
		}
		for rest := skipSpace(reply); rest != ""; rest = skipSpace(rest) {
			cut := fit(rest, maxChars)
			parts = append(parts, rest[:cut])
			rest = rest[cut:]
		}
	}
	return parts
}

// Where a text may be cut, the better ones first.
const (
	atParagraph = iota
	atLine
	atSentence
	atSpace
	atGrapheme
	cutKinds
)

// fit returns how many bytes of text, which begins with something visible, are its next part.
//
// That one pass stops at maxChars keeps Split linear: however early the best cut lies, the parts that follow find no cut of
// its kind before they are near maxChars long, so a byte is seen again at most a few times.
func fit(text string, maxChars int) int {
	var cuts [cutKinds]int
	var used, end int // code points and bytes up to here
	for end < len(text) {
		one := grapheme(text[end:])
		if isSpace(one) {
			run := spaceRun(text[end:])
			if end+run == len(text) {
				return end
			}
			cuts[cutKind(text[:end], text[end:end+run])] = end
			used, end = used+chars(text[end:end+run]), end+run
			continue
		}
		if used += chars(one); used > maxChars {
			break
		}
		end += len(one)
		cuts[atGrapheme] = end
	}
	if end == len(text) {
		return end
	}
	for _, cut := range cuts {
		if cut > 0 {
			return cut
		}
	}
	return len(grapheme(text))
}

// cutKind judges the white space behind a text.
func cutKind(before, space string) int {
	space = strings.ReplaceAll(space, "\r\n", "\n")
	switch breaks := strings.Count(space, "\n") + strings.Count(space, "\r") + strings.Count(space, "\u2028") + 2*strings.Count(space, "\u2029"); {
	case breaks > 1:
		return atParagraph
	case breaks == 1:
		return atLine
	}
	before = strings.TrimRight(before[max(0, len(before)-32):], "\"'”’»)]*_~") // quotes, brackets, and the marks of bold and italics
	if last, _ := utf8.DecodeLastRuneInString(before); strings.ContainsRune(".!?…", last) {
		return atSentence
	}
	return atSpace
}

func skipSpace(text string) string { return text[spaceRun(text):] }

// spaceRun is the length in bytes of the white space that text begins with. A space that carries a combining mark is visible.
func spaceRun(text string) int {
	run := 0
	for run < len(text) {
		one := grapheme(text[run:])
		if !isSpace(one) {
			break
		}
		run += len(one)
	}
	return run
}

func isSpace(grapheme string) bool {
	for _, r := range grapheme {
		if !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}

// grapheme is the first grapheme cluster of text. Two bytes of ASCII are always two clusters, but for CR LF.
func grapheme(text string) string {
	if len(text) > 1 && text[0] < utf8.RuneSelf && text[1] < utf8.RuneSelf && text[0] != '\r' {
		return text[:1]
	}
	one, _, _, _ := uniseg.FirstGraphemeClusterInString(text, -1)
	return one
}

func chars(text string) int { return utf8.RuneCountInString(text) }
