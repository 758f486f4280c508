package config

import (
	"regexp"
	"slices"
)

// provider is what delivery.account holds for one delivery type.
type provider struct {
	required, optional []string
	// base is the API's public address; without one the project has to name its own.
	base string
	// shapes are patterns of values that are not free text.
	shapes map[string]*regexp.Regexp
}

func (p provider) keys() []string { return slices.Concat(p.required, p.optional) }

// providers leaves optional what an installation can do without: Z-API's client token and WAHA's key are switches of theirs.
var providers = map[string]provider{
	"meta": {
		required: []string{"phone_number_id", "access_token"},
		optional: []string{"version"},
		base:     "https://graph.facebook.com",
		shapes:   map[string]*regexp.Regexp{"version": regexp.MustCompile(`^v[0-9]+\.[0-9]+$`)},
	},
	"evolution": {
		required: []string{"instance", "api_key"},
		optional: []string{"version"},
		shapes:   map[string]*regexp.Regexp{"version": regexp.MustCompile(`^[12]$`)},
	},
	"zapi": {
		required: []string{"instance", "token"},
		optional: []string{"client_token"},
		base:     "https://api.z-api.io",
	},
	"twilio": {
		required: []string{"account_sid", "auth_token", "from"},
		base:     "https://api.twilio.com",
	},
	"chatwoot": {
		required: []string{"account_id", "api_access_token"},
	},
	"waha": {
		optional: []string{"session", "api_key"},
	},
}

// openAccountKeys may be printed: they say which line it is, and open nothing.
var openAccountKeys = []string{"phone_number_id", "version", "instance", "account_sid", "from", "account_id", "session"}
