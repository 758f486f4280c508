// Package conversation knows which conversation a message belongs to, and carries out what people do to conversations and their
// turns.
package conversation

import "strings"

// punctuation is what a typed number may hold besides digits.
const punctuation = "][+ ()-"

// Key is the conversation of an identifier: a typed number without its punctuation and, where the country is BR, with the ninth
// digit; anything else (JID, LID, BSUID) is kept whole. It is "" for what is no identifier. The database's fila_key is the same
// rule.
func Key(phone, country string) string {
	key := strings.Trim(phone, " ")
	if phone != "" && strings.Trim(phone, punctuation+"0123456789") == "" {
		key = strings.Map(func(r rune) rune {
			if strings.ContainsRune(punctuation, r) {
				return -1
			}
			return r
		}, phone)
	}
	if country == "BR" && mobile(key) {
		return key[:4] + "9" + key[len(key)-8:]
	}
	return key
}

// mobile tells a Brazilian mobile, with or without its ninth digit: 55, two digits of the area, and eight that begin with 6 to 9.
func mobile(key string) bool {
	if len(key) != 12 && (len(key) != 13 || key[4] != '9') || !strings.HasPrefix(key, "55") {
		return false
	}
	first := key[len(key)-8]
	return first >= '6' && first <= '9' && strings.Trim(key, "0123456789") == ""
}

// Why a message of many people is not for the agent.
const (
	Group      = "group"
	Broadcast  = "broadcast"
	Newsletter = "newsletter"
)

// Ignored tells which identifiers are not one person: it returns Group, Broadcast (stories and lists) or Newsletter, and ""
// for a person.
func Ignored(identifier string) string {
	identifier = strings.ToLower(strings.TrimSpace(identifier))
	switch {
	case strings.HasSuffix(identifier, "@g.us"), strings.HasSuffix(identifier, "-group"):
		return Group
	case strings.HasSuffix(identifier, "@broadcast"), strings.HasSuffix(identifier, "-broadcast"):
		return Broadcast
	case strings.HasSuffix(identifier, "@newsletter"), strings.HasSuffix(identifier, "-newsletter"):
		return Newsletter
	}
	return ""
}
