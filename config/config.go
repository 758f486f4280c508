// Package config is the service's configuration: one YAML file, typed, defaulted, checked as a whole and printed
// without its secrets.
//
// The structs are the schema. A field's tags say how the file calls it and what it may hold:
//
//	key    the key in the file; its ending gives the unit of a duration (_seconds, minutes, _days)
//	env    an environment variable that wins over the file
//	oneof  the texts allowed, separated by |
//	keys   the keys allowed in a map, separated by |
//	is     a named check, see the formats table
//	min, max, above   bounds of a number, in the key's own unit
//
// What concerns more than one key is checked in rules.go.
package config

import "time"

// Config is a valid configuration. Only Load makes one.
type Config struct {
	// Listen is the host:port of the HTTP server.
	Listen string `key:"listen" env:"FILA_LISTEN" is:"address"`
	// DatabaseURL is empty where the private Postgres is meant.
	DatabaseURL DatabaseURL `key:"database_url" env:"FILA_DATABASE_URL" is:"database"`
	// AdminToken opens every route; it is never empty when Listen is reachable from outside.
	AdminToken Secret `key:"admin_token" env:"FILA_ADMIN_TOKEN" is:"token"`
	LogLevel   string `key:"log_level" env:"FILA_LOG_LEVEL" oneof:"trace|debug|info|warn|error"`
	// PublicURL is what providers call, where their signature covers the URL.
	PublicURL string `key:"public_url" is:"url"`
	// Sweep is the pause between looks for rows without a timer and turns without an owner.
	Sweep time.Duration `key:"sweep_seconds" min:"0.05"`
	// Lease is how long a turn outlives the last sign of life of its instance.
	Lease time.Duration `key:"lease_seconds" min:"0.5"`
	// Shutdown is how long running turns may finish after the signal to stop.
	Shutdown time.Duration `key:"shutdown_seconds" min:"0"`
	// Demo serves the built-in demo agent.
	Demo bool `key:"demo"`
	// Projects holds every project under its name.
	Projects map[string]*Project `key:"projects"`

	// Warnings are what is allowed but probably not meant, by line.
	Warnings []Fault

	origin origin
}

// Project is one clinic: its window, its agent, its delivery.
type Project struct {
	Name string
	// Debounce is the quiet time that ends a burst; 0 answers every message at once.
	Debounce time.Duration `key:"message_debounce_seconds" min:"0" max:"60"`
	// MaxWait is the ceiling since a burst's first message; five windows where the file says nothing.
	MaxWait time.Duration `key:"max_wait_seconds" min:"0"`
	// MaxMessages closes a burst that is this long.
	MaxMessages int `key:"max_messages" min:"1"`
	// Join stands between the texts of one turn.
	Join string `key:"join"`
	// DuringTurn says what a newer burst does to a running turn: queue, supersede or interrupt.
	DuringTurn string `key:"during_turn" oneof:"queue|supersede|interrupt"`
	// SupersedeLimit is how often in a row one conversation may be superseded.
	SupersedeLimit int `key:"supersede_limit" min:"0"`
	// Concurrency is how many turns of the project may run at once.
	Concurrency int `key:"concurrency" min:"1"`
	// Token opens this project's routes; no two projects share one.
	Token Secret `key:"token" is:"token"`
	// Country is BR where both forms of the ninth digit are one conversation, else empty.
	Country   string    `key:"country" oneof:"BR|"`
	Webhook   Webhook   `key:"webhook"`
	MediaText MediaText `key:"media_text"`
	Adaptive  Adaptive  `key:"adaptive"`
	Agent     Agent     `key:"agent"`
	Delivery  Delivery  `key:"delivery"`
	Retry     Retry     `key:"retry"`
	// OnDead says what a dead turn does to its conversation: advance or suspend.
	OnDead    string    `key:"on_dead" oneof:"advance|suspend"`
	Fallback  Fallback  `key:"fallback"`
	Takeover  Takeover  `key:"takeover"`
	Filters   Filters   `key:"filters"`
	Retention Retention `key:"retention"`
}

// Webhook is how a provider's calls prove where they come from, and how a custom one is read.
type Webhook struct {
	Secret         Secret `key:"secret"`
	PreviousSecret Secret `key:"previous_secret"`
	// Paths are gjson paths by the name of what they find.
	Paths map[string]string `key:"paths" keys:"items|id|phone|text|contact_name|session_id|from_me|kind|media_url|sent_at|team|status"`
}

// MediaText is the project's transcriber; off while URL is empty.
type MediaText struct {
	URL     string        `key:"url" is:"url"`
	Timeout time.Duration `key:"timeout_seconds" above:"0"`
	Kinds   []string      `key:"kinds" oneof:"audio|image|video|document|sticker"`
}

// Adaptive bounds a window that follows the patient's pace; off while both are 0.
type Adaptive struct {
	Min time.Duration `key:"min_seconds" min:"0" max:"60"`
	Max time.Duration `key:"max_seconds" min:"0" max:"60"`
}

// Agent is who answers a turn.
type Agent struct {
	URL           string        `key:"url" is:"url"`
	Timeout       time.Duration `key:"timeout_seconds" above:"0"`
	Headers       Headers       `key:"headers"`
	SigningSecret Secret        `key:"signing_secret" is:"signing secret"`
	// ReconcileURL is asked after an outcome that nobody knows.
	ReconcileURL string `key:"reconcile_url" is:"url"`
	// OnUnknown is retry, reconcile or hold.
	OnUnknown string `key:"on_unknown" oneof:"retry|reconcile|hold"`
}

// Delivery is how a reply leaves.
type Delivery struct {
	Type string `key:"type" oneof:"http|log|none|meta|evolution|zapi|twilio|chatwoot|waha"`
	// URL is where type http posts to; for a provider, the base of its API.
	URL string `key:"url" is:"url"`
	// Account is a provider's credentials and line, complete for its type.
	Account       Account       `key:"account"`
	Timeout       time.Duration `key:"timeout_seconds" above:"0"`
	Headers       Headers       `key:"headers"`
	SigningSecret Secret        `key:"signing_secret" is:"signing secret"`
	ReconcileURL  string        `key:"reconcile_url" is:"url"`
	// OnUnknown is hold, retry or reconcile.
	OnUnknown string `key:"on_unknown" oneof:"hold|retry|reconcile"`
	// PartMaxChars is the longest part, in code points.
	PartMaxChars int           `key:"part_max_chars" min:"1"`
	PartDelay    time.Duration `key:"part_delay_seconds" min:"0"`
	// Typing shows typing and marks as read where the provider can.
	Typing bool `key:"typing"`
}

// Retry bounds how often and how fast a failure is tried again.
type Retry struct {
	Attempts int           `key:"attempts" min:"1"`
	Min      time.Duration `key:"min_seconds" min:"0"`
	Max      time.Duration `key:"max_seconds" min:"0"`
}

// Fallback is what the patient is told once a turn is dead; nothing while Text is empty.
type Fallback struct {
	Text string `key:"text"`
	// Takeover gives the conversation to a human as well.
	Takeover bool `key:"takeover"`
}

// Takeover is what happens when a human steps in.
type Takeover struct {
	// OnHumanMessage takes over when a human of the clinic writes.
	OnHumanMessage bool          `key:"on_human_message"`
	Duration       time.Duration `key:"minutes" min:"0"`
	// Messages is what becomes of texts that come meanwhile: ignore or hold.
	Messages string `key:"messages" oneof:"ignore|hold"`
}

// Filters say which messages are not for the agent.
type Filters struct {
	// Groups lets messages of groups in.
	Groups bool `key:"groups"`
	// AllowedTeams lets in only these; empty lets in all.
	AllowedTeams    []string `key:"allowed_teams"`
	IgnoredStatuses []string `key:"ignored_statuses"`
	// MaxAge is the oldest a message may be when it arrives.
	MaxAge time.Duration `key:"max_age_seconds" min:"0"`
}

// Retention is how long rows are kept.
type Retention struct {
	Receipts time.Duration `key:"receipts_days" min:"0"`
	Turns    time.Duration `key:"turns_days" min:"0"`
	Dead     time.Duration `key:"dead_days" min:"0"`
}
