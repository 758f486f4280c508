package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"fila/config"
	"fila/internal/call"
	"fila/internal/postgres"
	"fila/internal/postgres/cluster"
	"fila/internal/queue"
	"fila/internal/retention"
	"fila/internal/schedule"
	"fila/internal/turn"
	statement "fila/sql"
)

const (
	arriveConns = 6
	runConns    = 16
	// Signs of life have connections of their own: slow readers of the ledger must not cost a turn its lease.
	keepConns = 2
	// settleFor is how long each step of the shutdown may take behind the time that running turns have.
	settleFor = 5 * time.Second
)

// service is `fila serve`: everything that runs, and how it starts and stops.
type service struct {
	load    func() (*config.Config, error)
	hangup  <-chan os.Signal
	migrate bool
	log     zerolog.Logger

	// applying is held while settings become the ones in use: at the start and on SIGHUP.
	applying sync.Mutex
	settings *config.Config

	listener  net.Listener
	cluster   *cluster.Cluster
	url       string
	arriving  *postgres.Pool
	running   *postgres.Pool
	keeping   *postgres.Pool
	transport *call.Transport

	queue     *queue.Queue
	store     *turn.Store
	keeper    *turn.Keeper
	scheduler *schedule.Scheduler
	projects  *projects
	entrance  *entrance
	retention *retention.Forgetter

	// opened: the schema is there and the projects are in it. stopping: SIGTERM has come.
	opened, stopping atomic.Bool
}

// open binds the address first: a taken port is an error at once, and nobody connects to a service that is not there.
func (s *service) open(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.settings.Listen)
	if err != nil {
		// Not wrapped: of a network error the command line would say that the database is lost.
		return errors.New("listen on " + s.settings.Listen + ": " + reason(err) + "; stop what uses the address, or choose another with FILA_LISTEN")
	}
	s.listener = listener
	if s.url = s.settings.DatabaseURL.Reveal(); s.url == "" {
		if err := s.startCluster(ctx); err != nil {
			_ = listener.Close()
			return err
		}
	}
	return s.build(ctx)
}

// reason is what lies below the words of package net.
func reason(err error) string {
	if below := errors.Unwrap(err); below != nil {
		return below.Error()
	}
	return err.Error()
}

func (s *service) startCluster(ctx context.Context) (err error) {
	s.log.Info().Str("folder", privateFolder).Msg("no database_url: starting a private Postgres")
	if s.cluster, err = cluster.Start(ctx, cluster.Options{Folder: privateFolder, Log: s.log, Durable: true}); err != nil {
		return err
	}
	s.url = s.cluster.URL("postgres")
	return nil
}

// build makes everything without starting it.
func (s *service) build(ctx context.Context) (err error) {
	instance := instanceName()
	if s.arriving, err = postgres.Open(ctx, postgres.Options{URL: s.url, MaxConns: arriveConns, Name: "fila arrive"}); err != nil {
		return err
	}
	if s.running, err = postgres.Open(ctx, postgres.Options{URL: s.url, MaxConns: runConns, Name: "fila run"}); err != nil {
		return err
	}
	if s.keeping, err = postgres.Open(ctx, postgres.Options{URL: s.url, MaxConns: keepConns, Name: "fila keep"}); err != nil {
		return err
	}
	s.transport = call.NewTransport()
	s.projects = newProjects()
	s.store = turn.NewStore(s.running, instance, s.settings.Lease)
	s.keeper = turn.NewKeeper(turn.NewStore(s.keeping, instance, s.settings.Lease), s.log)
	s.entrance = newEntrance(s)
	runner := turn.NewRunner(s.store, s.keeper, turn.Observer{
		Late:           s.entrance.metrics.Late,
		AgentCalled:    s.entrance.metrics.AgentCalled,
		DeliveryCalled: s.entrance.metrics.DeliveryCalled,
		Ended:          s.entrance.metrics.TurnEnded,
		Retry:          func(project string, delay time.Duration) { s.scheduler.Retry(project, delay) },
	}, s.log)
	s.scheduler = schedule.New(schedule.Options{
		Store: s.store, Run: runner.Run, Interrupt: s.keeper.Interrupt, Sweep: s.settings.Sweep, Log: s.log,
	})
	s.queue = queue.New(queue.Options{Pool: s.arriving, Log: s.log, Stored: s.stored})
	s.retention = retention.New(retention.Options{Pool: s.running, Forgot: s.entrance.metrics.Forgot, Log: s.log})
	s.entrance.build(s) //nolint:contextcheck // Requests bring contexts of their own.
	return nil
}

// stored tells the scheduler and the metrics of a message that has been committed.
func (s *service) stored(m queue.Message, r queue.Receipt) {
	s.entrance.metrics.MessageStored(m.Project, r.Status)
	switch {
	case r.Status == queue.Queued:
		s.scheduler.Arrived(m.Project, m.Phone)
	case r.Resent:
		s.scheduler.Watch(m.Project, m.Phone)
	}
}

func instanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "fila"
	}
	return fmt.Sprintf("%s-%d-%d", host, os.Getpid(), time.Now().Unix()%100000)
}

// run starts everything and stops it in the order in which nothing is lost: no new turns, then the running ones, then the
// entrances, then what was gathered, then the database.
func (s *service) run(ctx context.Context) error {
	base := context.WithoutCancel(ctx)
	intake, stopIntake := context.WithCancel(base)
	storing, stopStoring := context.WithCancel(base)
	keeping, stopKeeping := context.WithCancel(base)
	defer s.close(base)
	defer stopStoring()
	defer stopKeeping()
	defer stopIntake()

	var background errgroup.Group
	background.Go(func() error { return s.queue.Run(storing) })
	background.Go(func() error { return s.keeper.Run(keeping) })
	failed := make(chan error, 1)
	go func() { failed <- s.entrance.serve(s.listener) }()
	turns := make(chan struct{})
	go func() {
		defer close(turns)
		if s.prepare(intake) {
			background.Go(func() error { return s.retention.Run(intake) })
			_ = s.scheduler.Run(intake, base)
		}
	}()

	err := s.watch(ctx, failed)
	s.stopping.Store(true)
	stopIntake()
	s.letTurnsFinish(turns)
	s.closeEntrance(base)
	stopStoring()
	stopKeeping()
	return errors.Join(err, background.Wait())
}

// watch waits for the end, and reads the configuration again on SIGHUP meanwhile.
func (s *service) watch(ctx context.Context, failed <-chan error) error {
	var clusterGone <-chan struct{}
	if s.cluster != nil {
		clusterGone = s.cluster.Done()
	}
	for {
		select {
		case <-ctx.Done():
			s.log.Info().Msg("stopping: running turns may finish")
			return nil
		case err := <-failed:
			return fmt.Errorf("HTTP server: %w", err)
		case <-clusterGone:
			return fmt.Errorf("private Postgres: %w", s.cluster.Err())
		case <-s.hangup:
			// Not here: it waits for the database, and the signal to stop must not wait for it.
			go s.reload(ctx)
		}
	}
}

// letTurnsFinish gives running turns their time, then takes them away; what is left then goes to whoever claims it.
func (s *service) letTurnsFinish(turns <-chan struct{}) {
	s.applying.Lock()
	patience := s.settings.Shutdown
	s.applying.Unlock()
	select {
	case <-turns:
		return
	case <-time.After(patience):
	}
	s.keeper.Shutdown()
	select {
	case <-turns:
	case <-time.After(settleFor):
		s.log.Warn().Msg("some turns did not stop; their leases will end")
	}
}

func (s *service) closeEntrance(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	if err := s.entrance.close(ctx); err != nil {
		s.log.Warn().Err(err).Msg("some HTTP requests did not end")
	}
}

func (s *service) close(ctx context.Context) {
	s.arriving.Close()
	s.running.Close()
	s.keeping.Close()
	s.transport.CloseIdleConnections()
	if s.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*settleFor)
	defer cancel()
	if err := s.cluster.Stop(ctx); err != nil {
		s.log.Warn().Err(err).Msg("private Postgres did not stop in time")
	}
}

// prepare brings schema and projects up, however long the database stays away, and says whether the scheduler may start.
func (s *service) prepare(ctx context.Context) bool {
	said := ""
	for {
		err := s.prepareOnce(ctx)
		if err == nil {
			return true
		}
		if reason := postgres.Safe(err); reason != said && ctx.Err() == nil {
			said = reason
			s.log.Error().Str("error", reason).Msg("not ready yet, keeps trying")
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
}

var errOldSchema = errors.New("the schema is not up to date: run fila migrate")

func (s *service) prepareOnce(ctx context.Context) error {
	if s.migrate {
		steps, err := postgres.Migrate(ctx, s.url)
		if err != nil {
			return err
		}
		if steps > 0 {
			s.log.Info().Int("steps", steps).Msg("schema migrated")
		}
	} else if pending, err := postgres.Pending(ctx, s.url); err != nil {
		return err
	} else if pending {
		return errOldSchema
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	if err := s.apply(ctx, s.settings); err != nil {
		return err
	}
	if err := s.warnOfOrphans(ctx, s.settings); err != nil {
		return err
	}
	s.opened.Store(true)
	s.ready()
	return nil
}

// apply makes the settings' projects the ones that are served.
func (s *service) apply(ctx context.Context, settings *config.Config) error {
	served, err := s.projects.prepare(settings, s.transport, s.log)
	if err != nil {
		return err
	}
	if err := openProjects(ctx, s.running, settings); err != nil {
		return err
	}
	s.scheduler.Configure(served)
	s.entrance.admit(settings)
	s.projects.use(settings, served)
	return nil
}

// warnOfOrphans says what a project still has to answer that is in the database and not in the configuration.
func (s *service) warnOfOrphans(ctx context.Context, settings *config.Config) error {
	rows, err := s.running.Query(ctx, statement.Named("project_orphans"), slices.AppendSeq([]string{}, maps.Keys(settings.Projects)))
	if err != nil {
		return fmt.Errorf("look for orphans: %w", err)
	}
	var project string
	var waiting, open int64
	_, err = pgx.ForEachRow(rows, []any{&project, &waiting, &open}, func() error {
		s.log.Warn().Str("project", project).Int64("messages", waiting).Int64("turns", open).
			Msg("a project that is not in the configuration has work left; it goes on when the project is back")
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for orphans: %w", err)
	}
	return nil
}

// reload replaces the settings whole, or not at all.
func (s *service) reload(ctx context.Context) {
	settings, err := s.load()
	if err != nil {
		for _, line := range lines(err) {
			s.log.Error().Str("fault", line).Msg("configuration not changed")
		}
		return
	}
	warn(s.log, settings)
	s.applying.Lock()
	defer s.applying.Unlock()
	s.keepFixed(settings)
	if !s.opened.Load() {
		// The start is still waiting for its database, and will take these.
		s.settings = settings
		return
	}
	if err := s.apply(ctx, settings); err != nil {
		s.log.Error().Str("error", postgres.Safe(err)).Msg("configuration not changed")
		return
	}
	s.settings = settings
	s.log.Info().Int("projects", len(settings.Projects)).Msg("configuration read again")
}

// keepFixed says which changes need a restart, and keeps the values that are in use.
func (s *service) keepFixed(settings *config.Config) {
	old := s.settings
	for key, same := range map[string]bool{
		"listen": settings.Listen == old.Listen, "database_url": settings.DatabaseURL == old.DatabaseURL,
		"sweep_seconds": settings.Sweep == old.Sweep, "lease_seconds": settings.Lease == old.Lease,
		"log_level": settings.LogLevel == old.LogLevel, "demo": settings.Demo == old.Demo,
	} {
		if !same {
			s.log.Warn().Str("key", key).Msg("configuration: a change of this key takes effect with the next start")
		}
	}
}

// ready tells where the service is and what to try.
func (s *service) ready() {
	address := s.listener.Addr().String()
	s.log.Info().Str("listen", address).Int("projects", len(s.settings.Projects)).Msg("ready")
	if !s.settings.Demo {
		return
	}
	for _, name := range demoProjects(s.settings) {
		if elsewhere(s.settings.Projects[name].Agent.URL, address) {
			s.log.Warn().Str("project", name).Str("key", "agent.url").Msg("the demo agent answers at http://" + address + "/demo/agent, and agent.url names another port: change it, or nothing is answered")
		}
		s.log.Info().Str("project", name).Msg("try: " + demoCurl(address, s.settings.Projects[name]))
	}
}
