package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"fila/internal/conversation"
	"fila/internal/ledger"
	"fila/internal/postgres"
	statement "fila/sql"
)

// floor is what the flags of these commands say.
type floor struct {
	by, reason, waiting string
	minutes             float64
}

// action is something done to one conversation; it answers what there is to tell.
type action func(ctx context.Context, store *conversation.Store, project, phone string) (string, error)

func newConversation(c *cli) *cobra.Command {
	return group("conversation", "See and steer one conversation",
		newConversationShow(c), newTakeover(c), newRelease(c), newSuspend(c), newResume(c), newFlush(c), newTyping(c), newExport(c), newErase(c))
}

// conversationNamed checks that both halves of the name are there.
func conversationNamed(cmd *cobra.Command, args []string) error {
	if err := exactly("PROJECT", "PHONE")(cmd, args); err != nil {
		return err
	}
	for i, name := range []string{"PROJECT", "PHONE"} {
		if strings.TrimSpace(args[i]) == "" {
			return usagef(cmd, "%s is empty", name)
		}
	}
	return nil
}

// steer is a command that does one thing to a conversation.
func (c *cli) steer(name, short string, needs []string, act action) *cobra.Command {
	return &cobra.Command{
		Use: name + " PROJECT PHONE", Short: short, Args: conversationNamed,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, needs...); err != nil {
				return err
			}
			return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error {
				if err := knownProject(ctx, pool, args[0]); err != nil {
					return err
				}
				said, err := act(ctx, conversation.NewStore(pool), args[0], args[1])
				if err == nil {
					fmt.Fprintln(c.stdout, said)
				}
				return err
			})
		},
	}
}

func newTakeover(c *cli) *cobra.Command {
	var f floor
	var cmd *cobra.Command
	cmd = c.steer("takeover", "Give the conversation to a person; nothing is sent any more", []string{"by"},
		func(ctx context.Context, store *conversation.Store, project, phone string) (string, error) {
			var minutes *float64
			if cmd.Flags().Changed("minutes") {
				minutes = &f.minutes
			}
			done, err := store.Takeover(ctx, project, phone, minutes, f.by, f.reason)
			return done.Status, err
		})
	f.byFlag(cmd, "required")
	f.reasonFlag(cmd, "optional")
	cmd.Flags().Float64Var(&f.minutes, "minutes", 0, "for how long, also a fraction (default as the project says)")
	return cmd
}

func newRelease(c *cli) *cobra.Command {
	var f floor
	cmd := c.steer("release", "Give the conversation back to the agent", []string{"by"},
		func(ctx context.Context, store *conversation.Store, project, phone string) (string, error) {
			done, err := store.Release(ctx, project, phone, f.by)
			return done.Status, err
		})
	f.byFlag(cmd, "required")
	return cmd
}

func newSuspend(c *cli) *cobra.Command {
	var f floor
	cmd := c.steer("suspend", "Let messages gather; nobody answers until resume", []string{"by", "reason"},
		func(ctx context.Context, store *conversation.Store, project, phone string) (string, error) {
			done, err := store.Suspend(ctx, project, phone, f.by, f.reason)
			return done.Status, err
		})
	f.byFlag(cmd, "required")
	f.reasonFlag(cmd, "required")
	return cmd
}

func newResume(c *cli) *cobra.Command {
	var f floor
	cmd := c.steer("resume", "End a suspension", []string{"by", "waiting"},
		func(ctx context.Context, store *conversation.Store, project, phone string) (string, error) {
			done, err := store.Resume(ctx, project, phone, f.waiting, f.by)
			return done.Status, err
		})
	f.byFlag(cmd, "required")
	cmd.Flags().StringVar(&f.waiting, "waiting", "", "what becomes of the messages that waited: `answer` or discard (required)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains([]string{"", "answer", "discard"}, f.waiting) {
			return usagef(cmd, "--waiting %q is neither answer nor discard", f.waiting)
		}
		return nil
	}
	return cmd
}

func newFlush(c *cli) *cobra.Command {
	var f floor
	cmd := c.steer("flush", "Answer what waits now", nil,
		func(ctx context.Context, store *conversation.Store, project, phone string) (string, error) {
			done, err := store.Flush(ctx, project, phone, c.somebody(f.by))
			return done.Status, err
		})
	f.byFlag(cmd, "default the user of this session")
	return cmd
}

func newTyping(c *cli) *cobra.Command {
	return c.steer("typing", "The patient is typing: the window starts again, if anything waits in it", nil,
		func(ctx context.Context, store *conversation.Store, project, phone string) (string, error) {
			done, err := store.Typing(ctx, project, phone)
			return done.Status, err
		})
}

func newErase(c *cli) *cobra.Command {
	var f floor
	cmd := c.steer("erase", "Forget the patient: every text, name and number of this phone", []string{"by"},
		func(ctx context.Context, store *conversation.Store, project, phone string) (string, error) {
			gone, err := store.Erase(ctx, project, phone, f.by)
			return fmt.Sprintf("erased: waiting %d, turns %d, deliveries %d, receipts %d", gone.Waiting, gone.Turns, gone.Deliveries, gone.Receipts), err
		})
	f.byFlag(cmd, "required")
	return cmd
}

func (f *floor) byFlag(cmd *cobra.Command, note string) {
	cmd.Flags().StringVar(&f.by, "by", "", "`name` of who does it, for the audit ("+note+")")
}

func (f *floor) reasonFlag(cmd *cobra.Command, note string) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "`why`, for the audit ("+note+")")
}

// somebody is the name that was given, else that of the session's user.
func (c *cli) somebody(by string) string {
	if by != "" {
		return by
	}
	if us, err := user.Current(); err == nil {
		return us.Username
	}
	return cmp.Or(c.variable("USER"), "command line")
}

func newConversationShow(c *cli) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "show PROJECT PHONE", Short: "Show who has the floor, what waits, the last turns and who did what", Args: conversationNamed,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.connected(cmd, func(ctx context.Context, pool *postgres.Pool) error {
				return c.showConversation(ctx, pool, args[0], args[1])
			})
		},
	})
}

func (c *cli) showConversation(ctx context.Context, pool *postgres.Pool, project, phone string) error {
	shown, err := ledger.New(pool).Conversation(ctx, project, phone)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return unknownProject(project)
	case err != nil:
		return err
	case c.json:
		return c.printJSON(shown)
	}
	reasons, err := explain(ctx, pool, project, phone)
	if err != nil {
		return err
	}
	done, err := deeds(ctx, pool, project, shown.Phone)
	if err != nil {
		return err
	}
	now, err := value[time.Time](ctx, pool, "clock")
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	writeConversation(c.stdout, c.palette(), project, shown, reasons, now)
	if len(done) > 0 {
		section(c.stdout, c.palette(), "last actions")
		deedTable(c.palette(), done, now).write(c.stdout, "")
	}
	return nil
}

// explain says why the conversation stands where it stands, a line a fact.
func explain(ctx context.Context, pool *postgres.Pool, project, phone string) ([]string, error) {
	rows, err := pool.Query(ctx, statement.Named("conversation_explain"), project, phone)
	if err != nil {
		return nil, fmt.Errorf("explain conversation: %w", err)
	}
	reasons, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("explain conversation: %w", err)
	}
	return reasons, nil
}

func writeConversation(w io.Writer, p palette, project string, shown ledger.Conversation, reasons []string, now time.Time) {
	fmt.Fprintf(w, "%s of %s\n", p.paint(bold, shown.Phone), project)
	field(w, "mode", shown.Mode)
	field(w, "waiting", counted(shown.Waiting, "message", "messages"))
	if shown.FirstAt != nil {
		field(w, "first", age(now.Sub(*shown.FirstAt))+" ago")
	}
	section(w, p, "why it stands where it stands")
	for _, reason := range reasons {
		fmt.Fprintf(w, "  %s\n", indented(reason))
	}
	section(w, p, "last turns")
	turnTable(p, shown.Turns, now).write(w, "No turns.")
}
