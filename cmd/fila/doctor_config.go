package main

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"fila/config"
)

// shortSecret is the length, in characters, below which a secret can be guessed.
const shortSecret = 16

// examineConfig looks at the file that serve would read, and returns it if it is valid.
func (c *cli) examineConfig(found *checkup) *config.Config {
	settings, err := c.usable()
	if err != nil {
		for _, line := range lines(err) {
			found.add(failing, "configuration", "%s", line)
		}
		return nil
	}
	found.add(fine, "configuration", "%s is valid, with %s", c.configPath(), counted(len(settings.Projects), "project", "projects"))
	for _, w := range settings.Warnings {
		found.add(warning, "configuration", "%s", w.In(c.configPath()))
	}
	for _, s := range shortSecrets(settings) {
		found.add(warning, "configuration", "%s is shorter than %d characters and can be guessed: take a longer one, such as openssl rand -hex 24 prints", s, shortSecret)
	}
	if missing := missingSecrets(settings); missing != nil {
		found.add(hint, "configuration", "calls to other machines are not signed, and those cannot tell them from anybody's: set %s, on both sides", strings.Join(missing, ", "))
	}
	return settings
}

// missingSecrets names the keys without which somebody outside this machine would have to trust every caller.
func missingSecrets(settings *config.Config) []string {
	var missing []string
	for _, name := range sortedProjects(settings) {
		p := settings.Projects[name]
		if p.Agent.SigningSecret == "" && outside(p.Agent.URL) {
			missing = append(missing, "projects."+name+".agent.signing_secret")
		}
		if p.Delivery.Type == "http" && p.Delivery.SigningSecret == "" && outside(p.Delivery.URL) {
			missing = append(missing, "projects."+name+".delivery.signing_secret")
		}
	}
	return missing
}

// outside tells whether a URL leads to another machine.
func outside(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func sortedProjects(settings *config.Config) []string {
	return slices.Sorted(maps.Keys(settings.Projects))
}

// shortSecrets names the keys whose secret is there and short, sorted.
func shortSecrets(settings *config.Config) []string {
	secrets := map[string]config.Secret{"admin_token": settings.AdminToken}
	for name, p := range settings.Projects {
		at := "projects." + name
		secrets[at+".token"] = p.Token
		secrets[at+".webhook.secret"] = p.Webhook.Secret
		secrets[at+".webhook.previous_secret"] = p.Webhook.PreviousSecret
		secrets[at+".agent.signing_secret"] = p.Agent.SigningSecret
		secrets[at+".delivery.signing_secret"] = p.Delivery.SigningSecret
	}
	var short []string
	for _, key := range slices.Sorted(maps.Keys(secrets)) {
		if n := len(strings.TrimPrefix(secrets[key].Reveal(), "whsec_")); n > 0 && n < shortSecret {
			short = append(short, key)
		}
	}
	return short
}

// joined is an error on one line, however many faults it has.
func joined(err error) string { return strings.TrimPrefix(strings.Join(lines(err), "; "), "fila: ") }
