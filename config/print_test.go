package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPrintedTextsReadBack: what Print shows is the file's own notation, whatever a text holds.
func TestPrintedTextsReadBack(t *testing.T) {
	t.Parallel()
	awkward := rapid.OneOf(
		rapid.SampledFrom([]string{"", " ", "\n", "\n\n", "a\n", " a", "a ", "# a", "a: b", "- a", "true", "~", "012", "1e3", "<<", "é😀", "'", `"`, "\\", "\t", "a\r\nb", "*a", "&a", "!a", "---", "...", "{", "|", "\u2028", "\ufeff"}),
		rapid.StringOf(rapid.RuneFrom([]rune(" \n\tab:#-'\"\\{}[]|>&*!%@é"))),
		rapid.StringMatching(`[^\x00]*`),
	)
	rapid.Check(t, func(rt *rapid.T) {
		text := awkward.Draw(rt, "text")
		if strings.Contains(text, "${") {
			rt.Skip("would be filled in")
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			rt.Fatal(err)
		}
		first := mustLoad(t, strings.Replace(least, "    token: clinic-token\n", "", 1)+"    join: "+string(encoded)+"\n", nil)
		if got := first.Projects["clinic"].Join; got != text {
			rt.Fatalf("read %q, want %q", got, text)
		}
		again := mustLoad(t, printed(t, first), nil)
		if got := again.Projects["clinic"].Join; got != text {
			rt.Fatalf("read back %q, want %q\n%s", got, text, printed(t, first))
		}
	})
}
