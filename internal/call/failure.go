package call

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// Outcome is what is known of the effect of a call. Its zero value is the one that claims nothing.
type Outcome int

const (
	// Unknown: the request, or a part of it, left and no complete answer came. The effect may or may not have happened.
	Unknown Outcome = iota
	// NotDone: the receiver certainly did nothing. It may be called again.
	NotDone
	// Permanent: the receiver refused, or answered what cannot be used. Calling it again would end the same way.
	Permanent
	// Done: the call succeeded. No Failure has it.
	Done
)

// String gives the outcome's label in metrics and logs.
func (o Outcome) String() string {
	switch o {
	case NotDone:
		return "not_done"
	case Permanent:
		return "permanent"
	case Done:
		return "done"
	default:
		return "unknown"
	}
}

// Failure is the error of every call. It unwraps to what went wrong below, so that errors.Is finds context.Canceled, and
// the cause that came with it, where the caller gave up, and context.DeadlineExceeded where the time was over; the outcome
// still tells whether anything had been written.
type Failure struct {
	Outcome Outcome
	// Reason is for the operator: short, and without personal data, credentials or any part of the URL.
	Reason string
	// RetryAfter is how long the receiver asked to be left alone; 0 where it did not say.
	RetryAfter time.Duration

	cause error
}

// Error returns the reason.
func (f *Failure) Error() string { return f.Reason }

// Unwrap returns the error of the network or the context behind the failure, nil where an answer was the failure.
func (f *Failure) Unwrap() error { return f.cause }

// OutcomeOf is Done for no error, the outcome of the Failure in err's chain, or Unknown for any other error.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Done
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Outcome
	}
	return Unknown
}

// Failure turns an answer into an error: "<who> answered 503". The wait that the receiver asked for goes along.
func (r Response) Failure(outcome Outcome, who string) *Failure {
	return &Failure{Outcome: outcome, Reason: fmt.Sprintf("%s answered %d", who, r.Status), RetryAfter: r.RetryAfter}
}

// reason names an error of the network in words of our own: the error's text may hold the URL, with what is secret in it.
func reason(err error) string {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		if lookup.IsNotFound {
			return "host name not found"
		}
		return "host name lookup failed"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "TLS certificate is not trusted or not for this host"
	}
	if _, ok := errors.AsType[*handshakeError](err); ok {
		return "TLS handshake failed"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "answer broke off"
	}
	if errors.Is(err, io.EOF) {
		return "connection closed without an answer"
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Sprintf("no connection within %s", dialTimeout)
	}
	return "connection lost, or the answer is not HTTP"
}
