package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"fila/internal/postgres"
)

var (
	poolConnections = prometheus.NewDesc("fila_pool_connections", "Connections of a pool by what they do.", []string{"pool", "state"}, nil)
	poolMax         = prometheus.NewDesc("fila_pool_max_connections", "Connections that a pool may hold at once.", []string{"pool"}, nil)
	poolAcquired    = prometheus.NewDesc("fila_pool_acquires_total", "Connections handed out.", []string{"pool"}, nil)
	poolWaited      = prometheus.NewDesc("fila_pool_waits_total", "Connections that somebody had to wait for.", []string{"pool"}, nil)
	poolWait        = prometheus.NewDesc("fila_pool_wait_seconds_total", "Time that was spent waiting for connections.", []string{"pool"}, nil)
)

// pools shows the pools' own statistics.
type pools map[string]*postgres.Pool

// Describe implements prometheus.Collector.
func (p pools) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolConnections, poolMax, poolAcquired, poolWaited, poolWait} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (p pools) Collect(metrics chan<- prometheus.Metric) {
	for name, pool := range p {
		stat := pool.Stat()
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		}
		count := func(d *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, name)
		}
		gauge(poolConnections, float64(stat.AcquiredConns()), "used")
		gauge(poolConnections, float64(stat.IdleConns()), "idle")
		gauge(poolConnections, float64(stat.ConstructingConns()), "connecting")
		gauge(poolMax, float64(stat.MaxConns()))
		count(poolAcquired, float64(stat.AcquireCount()))
		count(poolWaited, float64(stat.EmptyAcquireCount()))
		count(poolWait, stat.EmptyAcquireWaitTime().Seconds())
	}
}
