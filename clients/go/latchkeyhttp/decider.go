package latchkeyhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

// decision is whether a request reaches its handler.
type decision struct {
	rejection *Rejection
	// Nil from Ratelimit.
	key *latchkey.VerifyKeyOutput
	// Headers for the answer of the handler.
	header http.Header
	// Nil without a hold.
	held *heldAnswer
}

// decider decides each request once.
type decider struct {
	decide func(request *http.Request, pattern string) (decision, error)
	// The sentence for a request that cannot be decided.
	undecided string
	failOpen  bool
	onError   func(*http.Request, error)
	onReject  func(http.ResponseWriter, *http.Request, Rejection)
}

func (d decider) middleware() func(http.Handler) http.Handler {
	if d.onError == nil {
		d.onError = logError
	}
	if d.onReject == nil {
		d.onReject = func(response http.ResponseWriter, _ *http.Request, rejection Rejection) { rejection.Write(response) }
	}
	// Marks the requests that this middleware has decided.
	decided := new(int)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			ctx := request.Context()
			if ctx.Value(decided) != nil {
				next.ServeHTTP(response, request)
				return
			}
			made, isVerified := d.settle(request, patternOf(request, next))
			if made.rejection != nil {
				d.onReject(response, request, *made.rejection)
				return
			}
			for name, values := range made.header {
				all := append(response.Header().Values(name), values...)
				response.Header().Set(name, strings.Join(all, ", "))
			}
			finish := func() {}
			if len(made.header) > 0 {
				joining := &joiningWriter{ResponseWriter: response, added: made.header}
				response, finish = joining, joining.join
			}
			ctx = context.WithValue(ctx, decided, true)
			if isVerified {
				ctx = withVerification(ctx, made.key)
			}
			if made.held != nil {
				made.held.serve(next, response, request.WithContext(context.WithValue(ctx, holdKey{}, made.held.hold)))
			} else {
				next.ServeHTTP(response, request.WithContext(ctx))
			}
			finish()
		})
	}
}

// settle returns a decision for every request, and whether it says something about the key of the request.
func (d decider) settle(request *http.Request, pattern string) (made decision, isVerified bool) {
	made, err := d.decide(request, pattern)
	if err == nil {
		return made, made.key != nil
	}
	// The end user has left.
	if !errors.Is(err, context.Canceled) {
		d.onError(request, err)
	}
	if d.failOpen && (errors.Is(err, errUnverified) || isOutage(err)) {
		_, isKnown := request.Context().Value(verificationKey{}).(verification)
		return decision{}, !isKnown
	}
	rejection := newRejection(CodeUndecided, d.undecided)
	wait := time.Second
	var failure *latchkey.Error
	if errors.As(err, &failure) {
		rejection.RequestID = failure.RequestID
		wait = max(wait, failure.RetryAfter)
	}
	rejection.retryAfter(wait)
	return decision{rejection: &rejection}, false
}

// isOutage returns whether the service is the reason why nothing was decided. End users can exhaust its look-ups with
// invented keys.
func isOutage(err error) bool {
	var failure *latchkey.Error
	return errors.As(err, &failure) && failure.Type != latchkey.ErrAborted &&
		failure.Type != latchkey.ErrApplicationLookupsExhausted &&
		(failure.Status == 0 || failure.Status >= http.StatusInternalServerError)
}

// patternOf returns the path of the pattern that http.ServeMux has found for the request, or will find.
func patternOf(request *http.Request, next http.Handler) string {
	pattern := request.Pattern
	if mux, ok := next.(*http.ServeMux); ok {
		_, pattern = mux.Handler(request)
	}
	if _, path, hasMethod := strings.Cut(pattern, " "); hasMethod {
		return strings.TrimLeft(path, " \t")
	}
	return pattern
}

// logError is the default of the hooks for errors.
func logError(request *http.Request, err error) {
	slog.ErrorContext(request.Context(), err.Error())
}
