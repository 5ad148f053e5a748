package latchkey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	holdTTLDefault      = time.Minute
	holdTTLMin          = time.Second
	holdLifetimeDefault = time.Hour
	// A hold ends at the latest 24 hours after it was made.
	holdLifetimeMax = 24 * time.Hour
	// An extension that fails can be tried once more before the hold expires.
	extensionsPerTTL = 3
	// With the waits between them, about half a minute.
	settlementAttempts = 8
	settlementWaitMax  = 8 * time.Second
)

// The first wait between two attempts to settle. Tests shorten it.
var settlementWaitFirst = 250 * time.Millisecond

// Settlement is what work did cost, as holds.settleHold takes it. HoldID is not used.
type Settlement = SettleHoldInput

// HoldOptions say how long a hold is kept open.
type HoldOptions struct {
	// The time until the hold expires unless it is extended, a second to 24 hours. 0: a minute.
	TTL time.Duration
	// What happens to the credits if this program ends before it could settle. Empty: they are given back.
	OnExpiry HoldOnExpiry
	// The longest time for which the hold is extended, from TTL to 24 hours. 0: an hour, or TTL if that is longer.
	LifetimeMax time.Duration
	// Called if the hold cannot be settled, with an [UnsettledHoldError]. Nil: slog prints it.
	OnError func(error)
}

// UnsettledHoldError says that a hold could not be settled or released. It expires; for a day, holds.settleHold can still
// settle it.
type UnsettledHoldError struct {
	HoldID string
	// What was to be charged. Nil: it was to be released.
	Settlement *Settlement
	Err        error
}

// Error returns the id of the hold and the reason.
func (e *UnsettledHoldError) Error() string {
	end := "released"
	if e.Settlement != nil {
		end = fmt.Sprintf("settled with %d credits", e.Settlement.Credits)
	}
	return fmt.Sprintf("latchkey: the hold %s could not be %s: %v", e.HoldID, end, e.Err)
}

// Unwrap returns the cause.
func (e *UnsettledHoldError) Unwrap() error { return e.Err }

// check returns the options with their defaults.
func (o HoldOptions) check() (HoldOptions, error) {
	if o.TTL == 0 {
		o.TTL = holdTTLDefault
	}
	if o.LifetimeMax == 0 {
		o.LifetimeMax = max(o.TTL, holdLifetimeDefault)
	}
	if o.TTL < holdTTLMin || o.TTL > holdLifetimeMax {
		return o, errors.New("latchkey: HoldOptions.TTL must be from a second to 24 hours")
	}
	if o.LifetimeMax < o.TTL || o.LifetimeMax > holdLifetimeMax {
		return o, errors.New("latchkey: HoldOptions.LifetimeMax must be from TTL to 24 hours")
	}
	if o.OnError == nil {
		o.OnError = func(err error) { slog.Error(err.Error()) }
	}
	return o, nil
}

// OpenHold is a hold whose work is under way. It is extended until it ends.
type OpenHold struct {
	client  *Client
	id      string
	cost    int64
	options HoldOptions
	madeAt  time.Time
	closing chan struct{}
	// The end of the context of the work.
	abandoned <-chan struct{}

	mutex     sync.Mutex
	expiresAt int64
	reported  *Settlement
	hasEnded  bool
}

// WithHold verifies a key with a hold, does work, and settles the hold with what the work reported, or else with the cost
// that was held. The hold is extended while the work lasts. If the work returns an error, what it reported is charged, and
// the hold is released if it reported nothing. A settlement that fails is tried again with the same amounts for about half a
// minute, also after the context has ended.
//
// The work is not done for a key that is not valid: the error is nil then, and Valid of the verification is false.
func (c *Client) WithHold(
	ctx context.Context, input VerifyKeyInput, options HoldOptions, work func(context.Context, *OpenHold) error,
) (*VerifyKeyOutput, error) {
	hold, result, err := c.Hold(ctx, input, options)
	if err != nil {
		return nil, err
	}
	verified := &result.Data
	if hold == nil {
		return verified, nil
	}
	hasFailed := true
	// Deferred, because the work may panic.
	defer hold.EndWith(context.WithoutCancel(ctx), func(reported *Settlement) *Settlement {
		if reported == nil && !hasFailed {
			return &Settlement{Credits: hold.cost}
		}
		return reported
	})
	err = work(ctx, hold)
	hasFailed = err != nil
	return verified, err
}

// Hold verifies a key with a hold, which is extended until [OpenHold.End]. The hold is nil if the key is not valid. The
// context is that of the work: when it ends, [OpenHold.Report] returns false, and the hold stays open. If it ends during the
// verification, the hold that the service makes is released.
func (c *Client) Hold(
	ctx context.Context, input VerifyKeyInput, options HoldOptions, callOptions ...CallOption,
) (*OpenHold, *Result[VerifyKeyOutput], error) {
	options, err := options.check()
	if err != nil {
		return nil, nil, err
	}
	input.Hold = &VerifyKeyInputHold{Ttl: options.TTL.Milliseconds(), OnExpiry: options.OnExpiry}
	cost := int64(1)
	if input.Credits != nil {
		cost = input.Credits.Cost
	}
	open := func(made *VerifyKeyOutputHold) *OpenHold {
		hold := &OpenHold{
			client: c, id: made.HoldID, expiresAt: made.ExpiresAt, cost: cost, options: options,
			madeAt: time.Now(), closing: make(chan struct{}), abandoned: ctx.Done(),
		}
		go hold.extend()
		return hold
	}
	c.holds.begin()
	made := c.verifyHeld(ctx, input, callOptions, func(late verification) {
		switch {
		case late.panicked != nil:
			options.OnError(fmt.Errorf("latchkey: a hook panicked: %v", late.panicked))
		case late.err == nil && late.result.Data.Hold != nil:
			open(late.result.Data.Hold).End(context.WithoutCancel(ctx), nil)
			return
		}
		c.holds.end()
	})
	switch {
	case made.isLate:
		return nil, nil, made.err
	case made.panicked != nil:
		c.holds.end()
		panic(made.panicked)
	case made.err == nil && made.result.Data.Valid && made.result.Data.Hold != nil:
		return open(made.result.Data.Hold), made.result, nil
	}
	c.holds.end()
	switch {
	case made.err != nil:
		return nil, nil, made.err
	case made.result.Data.Valid:
		return nil, nil, errors.New("latchkey: the service made no hold")
	}
	return nil, made.result, nil
}

// verification is how a verification with a hold ended.
type verification struct {
	result   *Result[VerifyKeyOutput]
	err      error
	panicked any
	// The context ended before.
	isLate bool
}

// verifyHeld verifies a key with a hold. If the context ends meanwhile, the call goes on, because the service may make the
// hold: its end is given to late.
func (c *Client) verifyHeld(
	ctx context.Context, input VerifyKeyInput, options []CallOption, late func(verification),
) verification {
	if ctx.Err() != nil {
		return verification{err: aborted(ctx, "keys.verifyKey")}
	}
	ended := make(chan verification)
	go func() {
		var made verification
		defer func() {
			made.panicked = recover()
			select {
			case ended <- made:
			case <-ctx.Done():
				late(made)
			}
		}()
		made.result, made.err = c.Keys.VerifyKey(context.WithoutCancel(ctx), input, options...)
	}()
	select {
	case made := <-ended:
		return made
	case <-ctx.Done():
		return verification{err: aborted(ctx, "keys.verifyKey"), isLate: true}
	}
}

// WaitForHolds waits until no hold of the client is open: all of them were settled or released, or that has failed for good.
// The middleware settles after the answer, so call it after the Shutdown of the server, before the program ends. It returns
// why the context ended, if it ends before.
func (c *Client) WaitForHolds(ctx context.Context) error {
	select {
	case <-c.holds.none():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// holdCount counts the holds that are open, or may be made.
type holdCount struct {
	mutex sync.Mutex
	count int
	// Closed when there is none. Nil: nobody waits.
	waiting chan struct{}
}

func (h *holdCount) begin() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.count++
}

func (h *holdCount) end() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.count--
	if h.count == 0 && h.waiting != nil {
		close(h.waiting)
		h.waiting = nil
	}
}

// none returns what is closed when there is none.
func (h *holdCount) none() <-chan struct{} {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	waiting := h.waiting
	if waiting == nil {
		waiting = make(chan struct{})
		if h.count == 0 {
			close(waiting)
		} else {
			h.waiting = waiting
		}
	}
	return waiting
}

// Check returns why the options cannot be used, or nil.
func (o HoldOptions) Check() error {
	_, err := o.check()
	return err
}

// Cost returns the credits that were held.
func (h *OpenHold) Cost() int64 { return h.cost }

// ID returns the id of the hold.
func (h *OpenHold) ID() string { return h.id }

// ExpiresAt returns when it expires, Unix time in milliseconds.
func (h *OpenHold) ExpiresAt() int64 {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.expiresAt
}

// Report says what the work did cost so far. It replaces what was reported before. It returns whether the work should go on:
// not if its context has ended, because the end user hung up for example, or the hold itself, after which no report counts.
// Credits below 0 are not reported, and OnError gets an error. A nil hold, of a request that passes while the service is away,
// ignores all reports.
func (h *OpenHold) Report(settlement Settlement) bool {
	if h == nil {
		return true
	}
	if settlement.Credits < 0 {
		h.options.OnError(errors.New("latchkey: a report of credits below 0 is ignored"))
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.hasEnded && settlement.Credits >= 0 {
		h.reported = &settlement
	}
	select {
	case <-h.abandoned:
		return false
	default:
		return !h.hasEnded
	}
}

// Reported returns what was reported last, or nil.
func (h *OpenHold) Reported() *Settlement {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.reported
}

// End settles the hold, or releases it without a settlement. It returns what was charged; nil if that is not known. Only the
// first end counts.
func (h *OpenHold) End(ctx context.Context, settlement *Settlement) *SettleHoldOutput {
	return h.EndWith(ctx, func(*Settlement) *Settlement { return settlement })
}

// EndWith is [OpenHold.End] with a settlement that is made of the last report, nil if there was none. No report counts from
// then on, and the hold is extended until settle returns.
func (h *OpenHold) EndWith(ctx context.Context, settle func(reported *Settlement) *Settlement) *SettleHoldOutput {
	h.mutex.Lock()
	isFirst := !h.hasEnded
	h.hasEnded = true
	reported := h.reported
	h.mutex.Unlock()
	if !isFirst {
		return nil
	}
	defer h.client.holds.end()
	settlement := settle(reported)
	close(h.closing)
	return h.close(ctx, settlement)
}

func (h *OpenHold) close(ctx context.Context, settlement *Settlement) *SettleHoldOutput {
	wait := settlementWaitFirst
	for attempt := 1; ; attempt++ {
		closed, err := h.closeOnce(ctx, settlement)
		if err == nil {
			return closed
		}
		var failure *Error
		if !errors.As(err, &failure) {
			failure = &Error{Status: -1}
		}
		isRefused := failure.Status == http.StatusBadRequest || failure.Status == http.StatusPreconditionFailed
		switch {
		case settlement == nil && failure.Status == http.StatusConflict:
			// It has expired, which may have charged it.
			return h.close(ctx, &Settlement{})
		case isRefused && settlement != nil && len(settlement.Ratelimits)+len(settlement.Tags) > 0:
			h.options.OnError(err)
			return h.close(ctx, &Settlement{Credits: settlement.Credits})
		case attempt == settlementAttempts || !mayPass(failure.Status):
			h.options.OnError(&UnsettledHoldError{h.id, settlement, err})
			return nil
		}
		pause := time.Duration(float64(wait) * (0.5 + rand.Float64()/2))
		timer := time.NewTimer(min(max(pause, failure.RetryAfter), settlementWaitMax))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			h.options.OnError(&UnsettledHoldError{h.id, settlement, err})
			return nil
		}
		wait *= 2
	}
}

func (h *OpenHold) closeOnce(ctx context.Context, settlement *Settlement) (*SettleHoldOutput, error) {
	if settlement == nil {
		released, err := h.client.Holds.ReleaseHold(ctx, ReleaseHoldInput{HoldID: h.id}, WithRetries(0))
		if err != nil {
			return nil, err
		}
		return &SettleHoldOutput{HoldID: released.Data.HoldID, State: released.Data.State}, nil
	}
	input := *settlement
	input.HoldID = h.id
	settled, err := h.client.Holds.SettleHold(ctx, input, WithRetries(0))
	if err != nil {
		return nil, err
	}
	return &settled.Data, nil
}

func (h *OpenHold) extend() {
	ticker := time.NewTicker(h.options.TTL / extensionsPerTTL)
	defer ticker.Stop()
	for {
		select {
		case <-h.closing:
			return
		case <-ticker.C:
		}
		left := min(h.options.TTL, h.options.LifetimeMax-time.Since(h.madeAt))
		if left < holdTTLMin {
			return
		}
		input := ExtendHoldInput{HoldID: h.id, Ttl: left.Milliseconds()}
		extended, err := h.client.Holds.ExtendHold(context.Background(), input, WithRetries(0))
		var failure *Error
		if errors.As(err, &failure) && !mayPass(failure.Status) {
			// It has expired. Its settlement will be a late one.
			return
		}
		if err == nil {
			h.mutex.Lock()
			h.expiresAt = extended.Data.ExpiresAt
			h.mutex.Unlock()
		}
	}
}

// mayPass returns whether the same call may succeed later. 0: there was no answer.
func mayPass(status int) bool {
	return status == 0 || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}
