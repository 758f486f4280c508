// Package metrics counts what the service does, and shows it with what the database knows in the format of Prometheus.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fila/internal/postgres"
)

// buckets fit what is measured here: an acknowledgement takes milliseconds, an agent up to a minute.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60}

// What the labels can be; every project shows all of them from its first moment, so that a rate sees the first event too.
var (
	statuses = []string{"queued", "duplicate", "ignored"}
	ends     = []string{"done", "superseded", "discarded", "dead"}
	outcomes = []string{"done", "not_done", "permanent", "unknown"}
)

// Metrics are those of one process. They are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	messages *prometheus.CounterVec
	turns    *prometheus.CounterVec
	lateness *prometheus.HistogramVec
	acks     *prometheus.HistogramVec
	agent    *prometheus.HistogramVec
	delivery *prometheus.HistogramVec
	forgot   *prometheus.CounterVec
	state    *state
}

// Options of the metrics.
type Options struct {
	// Pool reads, at each scrape, what only the database knows.
	Pool *postgres.Pool
	// Pools are shown by their names.
	Pools map[string]*postgres.Pool
}

// New makes the metrics of a process, with a registry of their own.
func New(o Options) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		messages: counter("fila_messages_total", "Messages by what became of them on arrival.", "project", "status"),
		turns:    counter("fila_turns_total", "Turns by how they ended.", "project", "state"),
		lateness: histogram("fila_turn_lateness_seconds", "From the moment a burst was due to the start of the agent's call.", "project"),
		acks:     histogram("fila_ack_seconds", "From the request of a message to its commit.", "project"),
		agent:    histogram("fila_agent_seconds", "Calls of the agent by outcome.", "project", "outcome"),
		delivery: histogram("fila_delivery_seconds", "Calls of the delivery by outcome.", "project", "outcome"),
		forgot:   counter("fila_forgotten_rows_total", "Rows deleted for their age.", "class"),
		state:    newState(o.Pool),
	}
	m.registry.MustRegister(
		m.messages, m.turns, m.lateness, m.acks, m.agent, m.delivery, m.forgot, m.state, pools(o.Pools),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Projects makes every series of these projects, at zero.
func (m *Metrics) Projects(names []string) {
	for _, project := range names {
		for _, status := range statuses {
			m.messages.WithLabelValues(project, status)
		}
		for _, end := range ends {
			m.turns.WithLabelValues(project, end)
		}
		m.lateness.WithLabelValues(project)
		m.acks.WithLabelValues(project)
		for _, outcome := range outcomes {
			m.agent.WithLabelValues(project, outcome)
			m.delivery.WithLabelValues(project, outcome)
		}
	}
}

// MessageStored counts a message after its commit; status is queued, duplicate or ignored.
func (m *Metrics) MessageStored(project, status string) {
	m.messages.WithLabelValues(project, status).Inc()
}

// Acked measures a request with messages that was accepted.
func (m *Metrics) Acked(project string, took time.Duration) {
	m.acks.WithLabelValues(project).Observe(took.Seconds())
}

// TurnEnded counts a turn that came to done, superseded, discarded or dead.
func (m *Metrics) TurnEnded(project, state string) { m.turns.WithLabelValues(project, state).Inc() }

// Late measures how long after its due moment a turn's first call began.
func (m *Metrics) Late(project string, late time.Duration) {
	m.lateness.WithLabelValues(project).Observe(max(0, late.Seconds()))
}

// AgentCalled measures a call of the agent; outcome is done, not_done, permanent or unknown.
func (m *Metrics) AgentCalled(project, outcome string, took time.Duration) {
	m.agent.WithLabelValues(project, outcome).Observe(took.Seconds())
}

// DeliveryCalled measures a call of the delivery; outcome is done, not_done, permanent or unknown.
func (m *Metrics) DeliveryCalled(project, outcome string, took time.Duration) {
	m.delivery.WithLabelValues(project, outcome).Observe(took.Seconds())
}

// Forgot counts rows that were deleted for their age, by class: turns, dead, receipts, erased or conversations.
func (m *Metrics) Forgot(class string, rows int64) {
	m.forgot.WithLabelValues(class).Add(float64(rows))
}

// Handler shows the metrics. A database that is away costs only what it alone knows.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
