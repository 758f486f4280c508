package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The general encoder turns some texts, such as a lone line break, into YAML that reads back as another text. A join
// may well be one, so the few shapes that a configuration has are written here.

func writeBlock(out *bytes.Buffer, o object, indent string) {
	for _, m := range o {
		fmt.Fprintf(out, "%s%s:", indent, notation(m.name))
		writeValue(out, m.value, indent+"  ")
	}
}

func writeValue(out *bytes.Buffer, value any, indent string) {
	switch v := value.(type) {
	case object:
		if len(v) == 0 {
			out.WriteString(" {}\n")
			return
		}
		out.WriteByte('\n')
		writeBlock(out, v, indent)
	case []string:
		words := make([]string, len(v))
		for i, word := range v {
			words[i] = notation(word)
		}
		fmt.Fprintf(out, " [%s]\n", strings.Join(words, ", "))
	case string:
		fmt.Fprintf(out, " %s\n", notation(v))
	default:
		fmt.Fprintf(out, " %v\n", v)
	}
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*(:[A-Za-z0-9_./-]+)*$|^[0-9]+\.[0-9.]+:[0-9]+$`)
	otherType = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n|inf|nan)$`)
)

// notation writes a text bare where nothing can be misread, else in quotes.
func notation(text string) string {
	if plainText.MatchString(text) && !otherType.MatchString(text) {
		return text
	}
	return quote(text)
}

// quote is JSON's, which YAML reads, without its escapes for HTML.
func quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(out.String(), "\n")
}
