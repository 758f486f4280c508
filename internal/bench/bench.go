// Package bench measures the service as its users meet it: the real program in a process of its own, over real HTTP, with an
// agent and a delivery on loopback that judge every turn. Beside it run, in the same minutes on the same machine, the figures
// that the result is compared with: without these a number says more about the machine than about the service.
package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Options of a run.
type Options struct {
	// DatabaseURL is a server on which the run makes a database of its own, and drops it.
	DatabaseURL string
	// Postmaster is the process of that server where it runs on this machine, else 0: then its CPU is not measured.
	Postmaster int
	// Program is the fila that is measured.
	Program string
	// Conversations is how many patients write in turn; 0: every burst comes from another.
	Conversations int
	// Burst is how many messages one patient writes before waiting for an answer.
	Burst int
	// Rate is how many messages arrive in a second, whatever the service does (open loop); 0: as many as Clients callers
	// can send one after the other (closed loop).
	Rate float64
	// Window is the project's message_debounce_seconds. Pauses within a burst lie between 0.02 and 0.7 of it.
	Window time.Duration
	// Length is for how long messages are sent.
	Length time.Duration
	// Projects share the load; 1 if 0.
	Projects int
	// Waiting is how many other conversations wait meanwhile, History how many messages of the past lie in the tables.
	Waiting, History int
	// Snapshot keeps another session's transaction open all the time: no row that dies meanwhile can be removed.
	Snapshot bool
	// AgentTakes is how long the agent thinks.
	AgentTakes time.Duration
	// Baseline measures pgbench, a no-op and the sleeping design too.
	Baseline bool
	// Seed of the pauses.
	Seed uint64
	// Progress hears what is being done and how much of it is done, from 0 to 1.
	Progress func(doing string, done float64)
}

// Clients is how many callers send at once in a closed loop, as many as pgbench has clients.
const Clients = 64

// settleFor bounds how long the last answers may take after the last message.
const settleFor = 60 * time.Second

// Report is what a run measured. Lateness is the start of the agent's call minus the moment the burst was due, both by this
// machine's clock.
type Report struct {
	AckedPerSecond float64 `json:"acked_per_s"`
	AckP50         float64 `json:"ack_p50_ms"`
	AckP99         float64 `json:"ack_p99_ms"`
	Messages       int     `json:"messages"`
	Refused        int     `json:"refused"`
	Bursts         int     `json:"bursts"`
	Turns          int     `json:"turns"`
	TurnsPerBurst  float64 `json:"turns_per_burst"`
	Lost           int     `json:"lost"`
	Duplicated     int     `json:"duplicated"`
	OutOfOrder     int     `json:"out_of_order"`
	Overlapped     int     `json:"overlapped"`
	Early          int     `json:"early"`
	Undelivered    int     `json:"undelivered"`
	LatenessP50    float64 `json:"lateness_p50_ms"`
	LatenessP99    float64 `json:"lateness_p99_ms"`
	LatenessMax    float64 `json:"lateness_max_ms"`
	// SettleSeconds is from the last message until the last answer was delivered.
	SettleSeconds      float64 `json:"settle_s"`
	TxPerMessage       float64 `json:"tx_per_message"`
	RowsPerMessage     float64 `json:"rows_per_message"`
	MessagesPerCommit  float64 `json:"messages_per_commit"`
	WALBytesPerMessage float64 `json:"wal_bytes_per_message"`
	// RSSBytes is the service's memory after the load, RSSPeakBytes the most it ever had.
	RSSBytes              int64    `json:"rss_bytes"`
	RSSPeakBytes          int64    `json:"rss_peak_bytes"`
	IdleTxPerSecond       float64  `json:"idle_tx_per_s"`
	IdleCPUPercent        float64  `json:"idle_cpu_percent"`
	IdleRSSBytes          int64    `json:"idle_rss_bytes"`
	ServiceCPUPerThousand float64  `json:"service_cpu_s_per_1000"`
	ServerCPUPerThousand  *float64 `json:"postgres_cpu_s_per_1000"`
	OwnCPUPerThousand     float64  `json:"generator_cpu_s_per_1000"`
	Seed                  uint64   `json:"seed"`
	// Start is there where conversations waited before the service started.
	Start *Start `json:"start,omitempty"`
	// Functions are those of the database that took most of its time; none where the server does not count them.
	Functions []Function `json:"functions"`
	Baseline  *Baseline  `json:"baseline,omitempty"`
	Ratio     *Ratio     `json:"ratio,omitempty"`
}

// Function is one function of the database: how often it was called for a message, and the microseconds that a message spent in it
// without what it calls.
type Function struct {
	Name         string  `json:"name"`
	Calls        float64 `json:"calls_per_message"`
	Microseconds float64 `json:"us_per_message"`
}

// Ratio is what may be compared between machines.
type Ratio struct {
	AckedToPgbench  float64 `json:"acked_to_pgbench"`
	AckedToEcho     float64 `json:"acked_to_echo"`
	AckedToSleeper  float64 `json:"acked_to_sleeper"`
	AckToSleeper    float64 `json:"ack_p50_to_sleeper"`
	LatenessToAck   float64 `json:"lateness_p50_to_ack_p50"`
	LatenessToAck99 float64 `json:"lateness_p99_to_ack_p99"`
	WALToPgbench    float64 `json:"wal_to_pgbench"`
}

// Run measures once.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	database, err := scratch(ctx, o.DatabaseURL)
	if err != nil {
		return Report{}, err
	}
	defer database.drop(ctx)
	report, err := measure(ctx, o, database)
	if err != nil || !o.Baseline {
		return report, err
	}
	report.Baseline, err = baseline(ctx, o)
	if err == nil {
		report.Ratio = report.ratio()
	}
	return report, err
}

func (o *Options) check() error {
	o.Projects = max(1, o.Projects)
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	switch {
	case o.Burst < 1 || o.Burst > 100:
		return fmt.Errorf("a burst of %d messages is not between 1 and 100", o.Burst)
	case o.Rate < 0:
		return errors.New("a rate is not below 0")
	case o.Window < 0 || o.Window > time.Minute:
		return fmt.Errorf("a window of %s is not between 0 and 60 s", o.Window)
	case o.Length <= 0:
		return errors.New("a run takes longer than 0 seconds")
	case o.Waiting < 0 || o.History < 0:
		return errors.New("a number of waiting conversations, or of messages of the past, is not below 0")
	case o.AgentTakes < 0:
		return errors.New("an agent does not take less than 0 seconds")
	case o.Conversations < 0:
		return errors.New("a number of conversations is not below 0")
	}
	return nil
}

func (r Report) ratio() *Ratio {
	b := r.Baseline
	return &Ratio{
		AckedToPgbench: part(r.AckedPerSecond, b.PgbenchTPS), AckedToEcho: part(r.AckedPerSecond, b.EchoRPS),
		AckedToSleeper: part(r.AckedPerSecond, b.SleeperAckedPerSecond), AckToSleeper: part(r.AckP50, b.SleeperAckP50),
		LatenessToAck: part(r.LatenessP50, r.AckP50), LatenessToAck99: part(r.LatenessP99, r.AckP99),
		WALToPgbench: part(r.WALBytesPerMessage, b.PgbenchWALBytes),
	}
}

// part is a over b, or 0 where there is no b.
func part(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
