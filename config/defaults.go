package config

import "time"

func newConfig() *Config {
	return &Config{
		Listen:   "127.0.0.1:8080",
		LogLevel: "info",
		Sweep:    time.Second,
		Lease:    15 * time.Second,
		Shutdown: 30 * time.Second,
		Projects: map[string]*Project{},
	}
}

// newProject leaves MaxWait to settle, because it follows the window.
func newProject(name string) *Project {
	return &Project{
		Name:           name,
		Debounce:       10 * time.Second,
		MaxMessages:    100,
		Join:           " ",
		DuringTurn:     "queue",
		SupersedeLimit: 3,
		Concurrency:    50,
		Country:        "BR",
		Webhook:        Webhook{Paths: map[string]string{}},
		MediaText:      MediaText{Timeout: 20 * time.Second, Kinds: []string{"audio", "image"}},
		Agent:          Agent{Timeout: 90 * time.Second, Headers: Headers{}, OnUnknown: "retry"},
		Delivery: Delivery{
			Type:         "http",
			Account:      Account{},
			Timeout:      30 * time.Second,
			Headers:      Headers{},
			OnUnknown:    "hold",
			PartMaxChars: 4096,
		},
		Retry:     Retry{Attempts: 3, Min: time.Second, Max: time.Minute},
		OnDead:    "advance",
		Takeover:  Takeover{OnHumanMessage: true, Duration: time.Hour, Messages: "ignore"},
		Filters:   Filters{AllowedTeams: []string{}, IgnoredStatuses: []string{}, MaxAge: day},
		Retention: defaultRetention,
	}
}

// settle fills in the defaults that depend on other values.
func (c *Config) settle() {
	for name, p := range c.Projects {
		if !c.origin.written(key("projects", name, "max_wait_seconds")) {
			p.MaxWait = 5 * p.Debounce
		}
		if p.Delivery.URL == "" {
			p.Delivery.URL = providers[p.Delivery.Type].base
		}
	}
}

const day = 24 * time.Hour

// defaultRetention: the longest provider repeats a webhook for seven days, so receipts are kept for eight.
var defaultRetention = Retention{Receipts: 8 * day, Turns: 30 * day, Dead: 14 * day}
