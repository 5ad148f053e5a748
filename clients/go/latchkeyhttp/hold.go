package latchkeyhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

const settleTimeout = 30 * time.Second

// HoldOptions are the option Hold of [VerifyOptions].
type HoldOptions struct {
	// The time until the hold expires if this program ends before it could settle. 0: a minute. It is extended while the
	// answer lasts.
	TTL time.Duration
	// What the expiry does with the credits. Empty: they are given back.
	OnExpiry latchkey.HoldOnExpiry
	// The longest time for which the hold is extended, at most 24 hours. 0: an hour.
	LifetimeMax time.Duration
	// What an answer did cost, when it has ended. Nil: what the handler reported, or else the cost that was held. If it
	// returns an error, panics, or takes 30 seconds, the cost that was held is charged, and OnError gets the reason.
	Settle func(*http.Request, EndedAnswer) (latchkey.Settlement, error)
}

func (o HoldOptions) times(onError func(error)) latchkey.HoldOptions {
	return latchkey.HoldOptions{TTL: o.TTL, OnExpiry: o.OnExpiry, LifetimeMax: o.LifetimeMax, OnError: onError}
}

// EndedAnswer is an answer that has ended.
type EndedAnswer struct {
	// Whether all of it was sent. False: the context of the request ended before, as when the end user hangs up, or the handler
	// panicked.
	Complete bool
	// 0 if there was none yet.
	Status int
	// Bytes of the body that the handler sent, before any compression by the server.
	Bytes int64
	// How often it sent some.
	Chunks int64
	// What the handler reported last; nil if it reported nothing.
	Reported *latchkey.Settlement
	// The credits that were held.
	Cost int64
}

type holdKey struct{}

// HoldFrom returns the hold of a request, to report what it did cost so far. Nil without one, as with FailOpen while the
// service is away: a report to a nil hold is ignored.
func HoldFrom(ctx context.Context) *latchkey.OpenHold {
	hold, _ := ctx.Value(holdKey{}).(*latchkey.OpenHold)
	return hold
}

// heldAnswer counts what is sent, and ends the hold of the answer with it.
type heldAnswer struct {
	hold    *latchkey.OpenHold
	settle  func(*http.Request, EndedAnswer) (latchkey.Settlement, error)
	onError func(error)
	request *http.Request

	mutex  sync.Mutex
	status int
	bytes  int64
	chunks int64
}

func (a *heldAnswer) serve(next http.Handler, response http.ResponseWriter, request *http.Request) {
	// It has the key in its context.
	a.request = request
	ctx := request.Context()
	complete := false
	// Not when the context ends: the handler can still send its answer, to an end user who closed only the own half of the
	// connection for example.
	defer func() { a.end(complete) }()
	if ctx.Err() != nil {
		// The end user has hung up during the verification.
		return
	}
	next.ServeHTTP(&countingWriter{response, a}, request)
	if complete = ctx.Err() == nil; complete {
		a.wrote(http.StatusOK, 0)
	}
}

// wrote counts a part of the body. The first status counts.
func (a *heldAnswer) wrote(status, count int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.status == 0 {
		a.status = status
	}
	if count > 0 && a.request.Method != http.MethodHead {
		a.bytes += int64(count)
		a.chunks++
	}
}

// end releases the hold if nothing was sent or the answer is an error, unless something was reported, and settles it
// otherwise.
func (a *heldAnswer) end(complete bool) {
	a.mutex.Lock()
	answer := EndedAnswer{Complete: complete, Status: a.status, Bytes: a.bytes, Chunks: a.chunks, Cost: a.hold.Cost()}
	a.mutex.Unlock()
	// The answer of the handler does not wait for it.
	go a.hold.EndWith(context.WithoutCancel(a.request.Context()), func(reported *latchkey.Settlement) *latchkey.Settlement {
		answer.Reported = reported
		isError := answer.Status >= http.StatusBadRequest
		if reported == nil && (isError || (!complete && answer.Bytes == 0)) {
			return nil
		}
		return a.settlement(answer)
	})
}

func (a *heldAnswer) settlement(answer EndedAnswer) *latchkey.Settlement {
	held := &latchkey.Settlement{Credits: answer.Cost}
	if a.settle == nil {
		if answer.Reported != nil {
			return answer.Reported
		}
		return held
	}
	type decided struct {
		settlement latchkey.Settlement
		err        error
	}
	settled := make(chan decided, 1)
	go func() {
		var made decided
		defer func() {
			if thrown := recover(); thrown != nil {
				made.err = fmt.Errorf("latchkeyhttp: HoldOptions.Settle panicked: %v", thrown)
			}
			settled <- made
		}()
		made.settlement, made.err = a.settle(a.request, answer)
		if made.err == nil && made.settlement.Credits < 0 {
			made.err = errors.New("latchkeyhttp: HoldOptions.Settle returned credits below 0")
		}
	}()
	timer := time.NewTimer(settleTimeout)
	defer timer.Stop()
	select {
	case made := <-settled:
		if made.err == nil {
			return &made.settlement
		}
		a.onError(made.err)
	case <-timer.C:
		a.onError(fmt.Errorf("latchkeyhttp: HoldOptions.Settle took more than %v", settleTimeout))
	}
	return held
}

// countingWriter counts what a handler sends.
type countingWriter struct {
	http.ResponseWriter
	answer *heldAnswer
}

func (w *countingWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.answer.wrote(status, 0)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(part []byte) (int, error) {
	count, err := w.ResponseWriter.Write(part)
	w.answer.wrote(http.StatusOK, count)
	return count, err
}

// Flush is that of the server, for handlers that stream.
func (w *countingWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack is that of the server. What follows it is not counted.
func (w *countingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
