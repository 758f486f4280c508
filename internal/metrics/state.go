package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"fila/internal/postgres"
	statement "fila/sql"
)

// scrapeTimeout bounds what a scrape waits for the database.
const scrapeTimeout = 2 * time.Second

var (
	stateStatement  = statement.Named("project_state")
	oldestStatement = statement.Named("retention_oldest")
)

var (
	waitingMessages = prometheus.NewDesc("fila_waiting_messages", "Messages that wait for a turn.", []string{"project"}, nil)
	oldestWaiting   = prometheus.NewDesc("fila_oldest_waiting_seconds", "Age of the oldest message that waits, 0 if none does.", []string{"project"}, nil)
	activeTurns     = prometheus.NewDesc("fila_active_turns", "Turns that are not at their end.", []string{"project", "state"}, nil)
	deadTurns       = prometheus.NewDesc("fila_dead_turns", "Dead letters that nobody has settled.", []string{"project"}, nil)
	suspended       = prometheus.NewDesc("fila_suspended_conversations", "Suspended conversations by what suspended them: a person, or a turn that died.", []string{"project", "cause"}, nil)
	oldestRow       = prometheus.NewDesc("fila_oldest_row_seconds", "Age of the oldest row, 0 if there is none: messages that wait, receipts, ended turns by their start, dead ones by their first message.", []string{"class"}, nil)
	lostMessages    = prometheus.NewDesc("fila_lost_messages", "Accepted messages that are in no fate; always 0.", []string{"project"}, nil)
)

// state shows what only the database knows, read when somebody asks.
type state struct {
	pool   *postgres.Pool
	flight singleflight.Group
	lost   lost
	errors prometheus.Counter
}

func newState(pool *postgres.Pool) *state {
	return &state{pool: pool, lost: newLost(), errors: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fila_scrape_errors_total", Help: "Scrapes that went without what the database knows.",
	})}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{waitingMessages, oldestWaiting, activeTurns, deadTurns, suspended, oldestRow, lostMessages} {
		descriptions <- d
	}
	s.errors.Describe(descriptions)
}

// Collect implements prometheus.Collector. A database that does not answer leaves its metrics out, so that nobody mistakes the
// past for the present.
func (s *state) Collect(metrics chan<- prometheus.Metric) {
	// However many ask at once, the database is asked once.
	read, err, _ := s.flight.Do("", func() (any, error) { return s.read() })
	if err != nil {
		s.errors.Inc()
	} else {
		found := read.(found)
		for _, p := range found.projects {
			p.collect(metrics)
		}
		for _, row := range found.oldest {
			metrics <- prometheus.MustNewConstMetric(oldestRow, prometheus.GaugeValue, row.Age, row.Class)
		}
	}
	s.errors.Collect(metrics)
}

// found is what one look at the database found.
type found struct {
	projects []projectState
	oldest   []oldest
}

// oldest is a class of rows and the age of the oldest, in seconds, as retention_oldest.sql lists them.
type oldest struct {
	Class string
	Age   float64
}

func (s *state) read() (f found, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if f.projects, err = collect[projectState](ctx, s.pool, stateStatement); err != nil {
		return f, err
	}
	if f.oldest, err = collect[oldest](ctx, s.pool, oldestStatement); err != nil {
		return f, err
	}
	lost, err := s.lost.count(ctx, s.pool)
	if err != nil {
		return f, err
	}
	for i := range f.projects {
		f.projects[i].Lost = lost[f.projects[i].Project]
	}
	f.oldest = append(f.oldest, f.queue())
	return f, nil
}

// queue is the age of what waits longest in any project.
func (f found) queue() oldest {
	row := oldest{Class: "queue"}
	for _, p := range f.projects {
		row.Age = max(row.Age, p.Oldest)
	}
	return row
}

func collect[T any](ctx context.Context, pool *postgres.Pool, statement string) ([]T, error) {
	rows, err := pool.Query(ctx, statement)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return all, nil
}

// projectState is a row of project_state.sql, and what is lost.
type projectState struct {
	Project                                      string
	Waiting                                      int64
	Oldest                                       float64
	Running, Retrying, Replied, Sending, Unknown int64
	Dead                                         int64
	SuspendedByPerson, SuspendedByDead           int64
	Lost                                         int `db:"-"`
}

func (p projectState) collect(metrics chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{p.Project}, labels...)...)
	}
	gauge(waitingMessages, float64(p.Waiting))
	gauge(oldestWaiting, p.Oldest)
	gauge(activeTurns, float64(p.Running), "running")
	gauge(activeTurns, float64(p.Retrying), "retrying")
	gauge(activeTurns, float64(p.Replied), "replied")
	gauge(activeTurns, float64(p.Sending), "sending")
	gauge(activeTurns, float64(p.Unknown), "unknown")
	gauge(deadTurns, float64(p.Dead))
	gauge(suspended, float64(p.SuspendedByPerson), "person")
	gauge(suspended, float64(p.SuspendedByDead), "dead")
	gauge(lostMessages, float64(p.Lost))
}
