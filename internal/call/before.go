package call

import "context"

type beforeKey struct{}

// Before returns a context under which a call asks check as late as it can: the connection is there, and nothing of the
// request is on it. An error keeps the request from leaving, and the failure says that nothing was done. What was so before
// a lookup, a dial and a handshake need not be so any more behind them. It takes a [Transport]; others do not ask.
func Before(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, beforeKey{}, check)
}

func before(ctx context.Context) func() error {
	check, _ := ctx.Value(beforeKey{}).(func() error)
	return check
}
