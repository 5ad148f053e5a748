package latchkeyhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

// RatelimitOptions are the options of [Ratelimit].
type RatelimitOptions struct {
	// Name or id of the namespace. A new name creates a namespace. Required.
	Namespace string
	// Maximum cost per window, for each identifier.
	Limit int64
	// Length of the window, in whole milliseconds. Required.
	Duration time.Duration
	// Cost of a request. Nil: 1. 0: check without charging.
	Cost *int64
	// What is counted: [ByOwner], [ByAddress], [ByAddressOf], or a function that returns a text. An error or an empty
	// text rejects the request. Required.
	Identifier func(*http.Request) (string, error)
	// Changes what is sent for a request, such as its limit. An error rejects the request.
	Input func(*http.Request, *latchkey.LimitInput) error
	// Whether requests pass while the service cannot be reached or fails. Otherwise they are answered with 503.
	FailOpen bool
	// Called when a request could not be decided, with the reason. Nil: slog prints it.
	OnError func(*http.Request, error)
	// Answers a request that is rejected. Nil: [Rejection.Write].
	OnReject func(http.ResponseWriter, *http.Request, Rejection)
}

// Ratelimit returns middleware that limits requests before it calls the handler. A request that comes by again is not
// counted again. It panics if an option cannot be used, with a text that names the option.
func Ratelimit(client *latchkey.Client, options RatelimitOptions) func(http.Handler) http.Handler {
	switch {
	case client == nil:
		panic("latchkeyhttp: the client is nil: give one from latchkey.New")
	case options.Namespace == "":
		panic("latchkeyhttp: RatelimitOptions.Namespace is missing")
	case options.Duration < time.Millisecond || options.Duration%time.Millisecond != 0:
		panic("latchkeyhttp: RatelimitOptions.Duration must be at least 1 ms, in whole milliseconds")
	case options.Identifier == nil:
		panic("latchkeyhttp: RatelimitOptions.Identifier is missing: give a function such as latchkeyhttp.ByOwner")
	}
	l := limiter{client, options}
	return decider{
		decide:    l.decide,
		undecided: "The limits cannot be checked right now. Try again shortly.",
		failOpen:  options.FailOpen,
		onError:   options.OnError,
		onReject:  options.OnReject,
	}.middleware()
}

type limiter struct {
	client  *latchkey.Client
	options RatelimitOptions
}

func (l limiter) decide(request *http.Request, _ string) (decision, error) {
	o := l.options
	identifier, err := o.Identifier(request)
	if err == nil && identifier == "" {
		err = errors.New("latchkeyhttp: RatelimitOptions.Identifier returned nothing for a request")
	}
	if err != nil {
		return decision{}, err
	}
	input := latchkey.LimitInput{
		Namespace:  o.Namespace,
		Identifier: identifier,
		Limit:      o.Limit,
		Duration:   o.Duration.Milliseconds(),
		Cost:       o.Cost,
	}
	if o.Input != nil {
		if err := o.Input(request, &input); err != nil {
			return decision{}, err
		}
	}
	result, err := l.client.Ratelimits.Limit(request.Context(), input, withoutWait)
	if err != nil {
		return decision{}, err
	}
	data := result.Data
	// A refusal has the end of its window. The answer of something else must not look like a limit that was reached.
	if !data.Success && data.Reset == 0 {
		return decision{}, errors.New("latchkeyhttp: the service answered without a decision: is it too old or too new?")
	}
	state := limitState{
		name: input.Namespace, limit: data.Limit, exceeded: !data.Success, remaining: data.Remaining, reset: &data.Reset,
		retryAfter: data.RetryAfter, partition: input.Identifier,
	}
	// The duration of an override is not known.
	if data.OverrideID == "" {
		state.duration = input.Duration
	}
	states := []limitState{state}
	// A limit in shadow mode denies nothing, and clients need not know it.
	if data.Shadow {
		states = nil
	}
	header := limitHeader(states, time.Now())
	if data.Success {
		return decision{header: header}, nil
	}
	refused := newRejection(Code(latchkey.VerifyKeyCodeRateLimited), "A limit of requests has been reached.")
	refused.RequestID = result.RequestID
	for name, values := range header {
		refused.Header[name] = values
	}
	if data.RetryAfter != nil {
		refused.retryAfter(time.Duration(*data.RetryAfter) * time.Millisecond)
	}
	return decision{rejection: &refused}, nil
}

// errUnverified is why ByOwner fails after a verification that failed open.
var errUnverified = errors.New("latchkeyhttp: the owner of the key is unknown, because it was not verified")

// ByOwner counts by the owner of the key that [Verify] accepted: the external id of its identity, or without an identity
// the id of the key.
func ByOwner(request *http.Request) (string, error) {
	verified, ok := request.Context().Value(verificationKey{}).(verification)
	switch {
	case !ok:
		return "", errors.New("latchkeyhttp: ByOwner needs Verify before Ratelimit")
	case verified.key == nil:
		return "", errUnverified
	case verified.key.Identity != nil:
		return verified.key.Identity.ExternalID, nil
	}
	return verified.key.KeyID, nil
}

// ByAddress counts by the address of the connection. An IPv6 address counts as its first 64 bits, because an end user has
// all of the rest. Behind a proxy, use [ByAddressOf].
func ByAddress(request *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		return "", err
	}
	return networkOf(host), nil
}

// ByAddressOf counts by the address that a function returns, such as one that a trusted proxy has set in a header. An IPv6
// address counts as its first 64 bits.
func ByAddressOf(address func(*http.Request) string) func(*http.Request) (string, error) {
	return func(request *http.Request) (string, error) { return networkOf(address(request)), nil }
}

// networkOf returns the address, or of an IPv6 address the network.
func networkOf(text string) string {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	address = address.WithZone("").Unmap()
	if address.Is4() {
		return address.String()
	}
	return netip.PrefixFrom(address, 64).Masked().String()
}

// withVerification returns a context with the result of a verification.
func withVerification(ctx context.Context, key *latchkey.VerifyKeyOutput) context.Context {
	return context.WithValue(ctx, verificationKey{}, verification{key})
}
