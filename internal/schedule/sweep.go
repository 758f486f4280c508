package schedule

import (
	"context"
	"time"

	"fila/internal/turn"
)

const (
	// pageRows is how much of a project's queue one sweep looks at. A page that is full is followed by the next one in the
	// next sweep; the whole queue is come round to.
	pageRows = 2000
	// pagesAtOnce is how many pages one sweep may take while they bring up bursts that nobody had a timer for.
	pagesAtOnce = 50
)

// runRebuild makes the timers anew from the queue, at the start and whenever windows changed.
func (s *Scheduler) runRebuild(ctx context.Context) {
	for {
		select {
		case <-s.rebuild:
		case <-ctx.Done():
			return
		}
		for !s.rebuildOnce(ctx) {
			select {
			case <-time.After(jitter(awayPause)):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *Scheduler) rebuildOnce(ctx context.Context) bool {
	projects, _ := s.swept(nil)
	now, found := time.Now(), 0
	err := s.store.EachWaiting(ctx, projects, func(w turn.Waiting) {
		found++
		s.timers.at(conversation{w.Project, w.Phone}, now.Add(w.DueIn), now.Add(-w.FirstAgo), w.Messages)
	})
	if err != nil {
		s.away(ctx, err)
		return false
	}
	for _, project := range projects {
		s.lane(project).wantClaim()
	}
	s.log.Info().Int("waiting", found).Dur("took_ms", time.Since(now)).Msg("timers stand")
	return true
}

func (s *Scheduler) runSweep(ctx context.Context) {
	ticker := time.NewTicker(s.sweep)
	defer ticker.Stop()
	cursors := map[string]string{}
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for range pagesAtOnce {
			if !s.sweepOnce(ctx, cursors) {
				break
			}
		}
	}
}

// swept lists the projects to sweep and where each one's page begins.
func (s *Scheduler) swept(cursors map[string]string) (projects, after []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.lanes {
		projects = append(projects, name)
		after = append(after, cursors[name])
	}
	return projects, after
}

// sweepOnce takes one page of every project and says whether the next page is worth taking at once.
func (s *Scheduler) sweepOnce(ctx context.Context, cursors map[string]string) (goOn bool) {
	projects, after := s.swept(cursors)
	if len(projects) == 0 {
		return false
	}
	for _, project := range projects {
		s.lane(project).beginSweep()
	}
	found, err := s.store.Sweep(ctx, projects, after, pageRows)
	if err != nil {
		s.away(ctx, err)
		return false
	}
	s.back()
	clear(cursors)
	unknown, full := false, false
	for _, f := range found {
		l := s.lane(f.Project)
		switch f.Kind {
		case "wakeup":
			s.Wake(f.Project, f.Phone)
		case "turn":
			l.wantClaim()
		case "foreign":
			s.adopt(ctx, l)
		case "overdue":
			if !l.wasAsked(f.Phone) && !s.watches(l, f.Phone) {
				l.look(f.Phone)
				unknown = true
			}
		case "page":
			if f.Rows >= pageRows {
				cursors[f.Project] = f.Phone
				full = true
			}
		}
	}
	return unknown && full
}

func (s *Scheduler) adopt(ctx context.Context, l *lane) {
	phones, err := s.store.Adopt(ctx, l.name)
	if err != nil {
		s.away(ctx, err)
		return
	}
	l.look(phones...)
}
