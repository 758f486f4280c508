package config

import (
	"fmt"
	"slices"
)

// later is a key that this version checks but does not act on.
type later struct {
	key  string
	used func(*Project) bool
	// sentence follows the key; %s is the value, where the key is a choice.
	sentence string
	value    func(*Project) string
}

// notYet lists them. A row goes when its feature comes.
var notYet = []later{
	{
		key: "delivery.type", sentence: "%s is not available in this version; use http, log or none",
		used:  func(p *Project) bool { return !slices.Contains([]string{"http", "log", "none"}, p.Delivery.Type) },
		value: func(p *Project) string { return p.Delivery.Type },
	},
	{key: "delivery.typing", sentence: removeIt, used: func(p *Project) bool { return p.Delivery.Typing }},
	{key: "media_text.url", sentence: removeIt, used: func(p *Project) bool { return p.MediaText.URL != "" }},
	{key: "adaptive.min_seconds", sentence: removeIt, used: func(p *Project) bool { return p.Adaptive.Min != 0 }},
	{key: "adaptive.max_seconds", sentence: removeIt, used: func(p *Project) bool { return p.Adaptive.Max != 0 }},
	{key: "webhook.secret", sentence: removeIt, used: func(p *Project) bool { return p.Webhook.Secret != "" }},
	{key: "webhook.previous_secret", sentence: removeIt, used: func(p *Project) bool { return p.Webhook.PreviousSecret != "" }},
	{key: "webhook.paths", sentence: removeIt, used: func(p *Project) bool { return len(p.Webhook.Paths) > 0 }},
}

const removeIt = "is not available in this version; remove it"

// NotYet returns a fault for every key in use whose feature this version lacks, by line. Starting in spite of them would
// look as if they worked.
func (c *Config) NotYet() []Fault {
	var found []Fault
	if c.PublicURL != "" {
		found = append(found, c.origin.fault("public_url", removeIt))
	}
	for _, name := range sortedNames(c.Projects) {
		p := c.Projects[name]
		for _, row := range notYet {
			if !row.used(p) {
				continue
			}
			sentence := row.sentence
			if row.value != nil {
				sentence = fmt.Sprintf(sentence, row.value(p))
			}
			found = append(found, c.origin.fault(key("projects", name, row.key), sentence))
		}
	}
	sortFaults(found)
	return found
}
