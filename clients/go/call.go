package latchkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	random "math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"time"
)

const (
	answerBytesMax = 16 << 20
	waitFirst      = 100 * time.Millisecond
)

// Attempt is one attempt of a call.
type Attempt struct {
	Operation string
	// 1, 2, …
	Attempt int
	// Without the root key.
	Header http.Header
}

// AttemptEnd is how an attempt ended.
type AttemptEnd struct {
	Operation string
	Attempt   int
	Duration  time.Duration
	// 0 without an answer.
	Status    int
	RequestID string
	// Nil if it succeeded.
	Error *Error
	// The time until the next attempt; 0 if there is none.
	RetryIn time.Duration
}

// RequestLimit is the limit of requests per minute of the workspace.
type RequestLimit struct {
	Limit     int64
	Remaining int64
	// The time until the minute ends.
	Reset time.Duration
}

// Result is the answer to a call that succeeded.
type Result[Data any] struct {
	Data Data
	// Identifies the call in the log of the service.
	RequestID string
	// Nil if the workspace has no limit of requests.
	RequestLimit *RequestLimit
}

// Page is one page of a list.
type Page[Data any] struct {
	Result[Data]
	Pagination Pagination
}

// Pagination says where a list continues.
type Pagination struct {
	HasMore bool `json:"hasMore"`
	// Send it as Cursor to get the next page. Nil if there is none.
	Cursor *string `json:"cursor,omitzero"`
}

// Empty is an answer without members.
type Empty struct{}

// repetition says whether a call can be repeated after a lost answer.
type repetition int

const (
	never repetition = iota
	always
	// With an Idempotency-Key.
	withKey
	// With an Idempotency-Key, which is sent on request.
	onRequest
)

// traits is what the client must know of an operation besides its types.
type traits struct {
	operation  string
	repetition repetition
	// Set by callPage: an answer without its page is none of the operation.
	isPaged bool
}

type connection struct {
	url      string
	rootKey  Secret
	sender   *http.Client
	settings settings
	// wait returns false if the context ended before.
	wait    func(context.Context, time.Duration) bool
	breaker *breaker
}

// answer is the JSON of every answer.
type answer[Data any] struct {
	Meta struct {
		RequestID string `json:"requestId"`
	} `json:"meta"`
	Data       *Data       `json:"data"`
	Pagination *Pagination `json:"pagination,omitzero"`
	Error      *struct {
		Type   string       `json:"type"`
		Detail string       `json:"detail"`
		Errors []InputError `json:"errors"`
	} `json:"error,omitzero"`
}

func call[Data any](
	ctx context.Context, c *connection, t traits, input any, options []CallOption,
) (*Result[Data], error) {
	page, err := attempts[Data](ctx, c, t, input, options)
	if err != nil {
		return nil, err
	}
	return &page.Result, nil
}

func callPage[Data any](
	ctx context.Context, c *connection, t traits, input any, options []CallOption,
) (*Page[Data], error) {
	t.isPaged = true
	return attempts[Data](ctx, c, t, input, options)
}

// attempts makes a call. Its answer has an empty page if the operation has none.
func attempts[Data any](
	ctx context.Context, c *connection, t traits, input any, options []CallOption,
) (*Page[Data], error) {
	s := c.settings.call
	for _, option := range options {
		option.applyToCall(&s)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("latchkey: the input of %s cannot be sent as JSON: %w", t.operation, err)
	}
	isRetried := s.retries > 0 && (t.repetition == withKey || (t.repetition == onRequest && s.retryCharges))
	if s.idempotencyKey == "" && isRetried {
		s.idempotencyKey = rand.Text()
	}
	isRepeatable := t.repetition == always || (t.repetition != never && s.idempotencyKey != "")

	var earlier *Error
	for attempt := 1; ; attempt++ {
		admitted, isAdmitted := c.breaker.admit()
		switch {
		case isAdmitted:
		case earlier != nil:
			// It may have been executed, and its error says so.
			return nil, earlier
		default:
			return nil, notSent(t.operation)
		}
		startedAt := time.Now()
		page, failure := attemptWith[Data](ctx, c, t, admitted, Attempt{t.operation, attempt, http.Header{}}, body, s)
		end := AttemptEnd{Operation: t.operation, Attempt: attempt, Duration: time.Since(startedAt), Error: failure}
		mayRetry := false
		if failure == nil {
			end.Status, end.RequestID = http.StatusOK, page.RequestID
		} else {
			end.Status, end.RequestID = failure.Status, failure.RequestID
			mayRetry = attempt <= s.retries && !c.breaker.isOpen() && isSafe(failure, attempt, isRepeatable) &&
				failure.RetryAfter <= s.retryWaitMax
		}
		if mayRetry {
			end.RetryIn = retryIn(failure, attempt, s.retryWaitMax)
		}
		if hook := c.settings.onResponse; hook != nil {
			hook(ctx, end)
		}
		if failure == nil {
			return page, nil
		}
		if !mayRetry {
			return nil, failure
		}
		if !c.wait(ctx, end.RetryIn) {
			return nil, aborted(ctx, t.operation)
		}
		earlier = failure
	}
}

// attemptWith makes an attempt, and reports its end to the circuit breaker.
func attemptWith[Data any](
	ctx context.Context, c *connection, t traits, admitted permit, attempt Attempt, body []byte, s callSettings,
) (page *Page[Data], failure *Error) {
	// A hook can panic.
	ended := outcomeUnknown
	defer func() { c.breaker.end(admitted, ended) }()
	header := attempt.Header
	if hook := c.settings.onRequest; hook != nil {
		hook(ctx, attempt)
	}
	header.Set("Content-Type", "application/json")
	if rootKey := c.rootKey.Reveal(); rootKey != "" {
		header.Set("Authorization", "Bearer "+rootKey)
	}
	if s.idempotencyKey != "" {
		// net/http repeats a request with this name in its canonical form by itself, unseen by the hooks.
		header.Del("Idempotency-Key")
		header["idempotency-key"] = []string{s.idempotencyKey}
	}
	page, failure = attemptOnce[Data](ctx, c, t, header, body, s.timeout)
	switch {
	case failure == nil || failure.Status != 0:
		ended = outcomeAnswered
	case failure.Type == ErrTimeout:
		ended = outcomeTimeout
	}
	return page, failure
}

// isSafe returns whether another attempt has no further effect.
func isSafe(failure *Error, attempt int, isRepeatable bool) bool {
	// A call over a limit of requests had no effect.
	if failure.Status == http.StatusTooManyRequests {
		return true
	}
	if !isRepeatable {
		return false
	}
	switch failure.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	switch failure.Type {
	case ErrNetwork, ErrTimeout:
		return true
	case ErrApplicationIdempotencyInProgress:
		// An attempt without an answer is still being executed.
		return attempt > 1
	}
	return false
}

func retryIn(failure *Error, attempt int, waitMax time.Duration) time.Duration {
	backOff := min(waitFirst<<(attempt-1), waitMax)
	jitter := 0.5 + random.Float64()/2
	return time.Duration(math.Round(float64(backOff)*jitter)) + failure.RetryAfter
}

func wait(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// notSent is the error of a call that the circuit breaker does not let pass.
func notSent(operation string) *Error {
	detail := "The call was not sent, because the service left several in a row without an answer. Try again shortly."
	return &Error{Type: ErrCircuitOpen, Operation: operation, Detail: detail}
}

func aborted(ctx context.Context, operation string) *Error {
	return &Error{Type: ErrAborted, Operation: operation, Detail: "The context of the call ended.", Err: context.Cause(ctx)}
}

func attemptOnce[Data any](
	ctx context.Context, c *connection, t traits, header http.Header, body []byte, timeout time.Duration,
) (*Page[Data], *Error) {
	operation := t.operation
	if ctx.Err() != nil {
		return nil, aborted(ctx, operation)
	}
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(timed, http.MethodPost, c.url+"/v2/"+operation, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Type: ErrNetwork, Operation: operation, Detail: "The request cannot be made.", Err: err}
	}
	request.Header = header
	response, err := c.sender.Do(request)
	if err == nil {
		defer response.Body.Close()
		if response.StatusCode == http.StatusSwitchingProtocols {
			// Its body is the connection, whose reads neither end by themselves nor with the context.
			return readAnswer[Data](t, response, nil)
		}
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1)); err == nil {
			return readAnswer[Data](t, response, text)
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, aborted(ctx, operation)
	case timed.Err() != nil:
		detail := fmt.Sprintf("The service did not answer within %s.", timeout)
		return nil, &Error{Type: ErrTimeout, Operation: operation, Detail: detail, Err: err}
	}
	reason := err
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		reason = wrapped.Err
	}
	detail := fmt.Sprintf("The service cannot be reached: %s.", reason)
	return nil, &Error{Type: ErrNetwork, Operation: operation, Detail: detail, Err: err}
}

var (
	wholeSeconds = regexp.MustCompile(`^\d{1,6}$`)
	errorPage    = regexp.MustCompile(`^.*/errors/`)
)

// readAnswer returns the answer, or the error that it describes. Its shape is checked: an address can be that of
// another service.
func readAnswer[Data any](t traits, response *http.Response, text []byte) (*Page[Data], *Error) {
	failure := &Error{Type: ErrInvalidAnswer, Operation: t.operation, Status: response.StatusCode}
	if after := response.Header.Get("Retry-After"); wholeSeconds.MatchString(after) {
		seconds, _ := strconv.Atoi(after)
		failure.RetryAfter = time.Duration(seconds) * time.Second
	}
	if len(text) > answerBytesMax {
		failure.Detail = "The answer is longer than 16 MiB."
		return nil, failure
	}
	var read answer[Data]
	err := json.Unmarshal(text, &read)
	switch {
	case err == nil && response.StatusCode == http.StatusOK && read.Data != nil && read.Meta.RequestID != "":
		fault := shapeFault(text, reflect.TypeFor[answer[Data]]())
		if fault == "" && t.isPaged && read.Pagination == nil {
			fault = "pagination is missing"
		}
		if fault != "" {
			failure.RequestID = read.Meta.RequestID
			failure.Detail = fmt.Sprintf("The answer is not one of this operation: %s. Is the service too old or too new?", fault)
			return nil, failure
		}
		page := &Page[Data]{Result: Result[Data]{*read.Data, read.Meta.RequestID, readRequestLimit(response.Header)}}
		if read.Pagination != nil {
			page.Pagination = *read.Pagination
		}
		return page, nil
	case err == nil && read.Error != nil && read.Error.Type != "":
		failure.Type = ErrorType(errorPage.ReplaceAllString(read.Error.Type, ""))
		failure.Detail, failure.Errors, failure.RequestID = read.Error.Detail, read.Error.Errors, read.Meta.RequestID
	case response.StatusCode >= 300 && response.StatusCode < 400:
		failure.Detail = "The address redirects to another one. Redirects are not followed: use that address."
	default:
		failure.Err = err
		failure.Detail = fmt.Sprintf("The answer has status %d and is not one of Latchkey. Is it the right address?", response.StatusCode)
	}
	return nil, failure
}

func readRequestLimit(header http.Header) *RequestLimit {
	var numbers [3]int64
	for i, name := range []string{"Limit", "Remaining", "Reset"} {
		number, err := strconv.ParseInt(header.Get("RateLimit-"+name), 10, 32)
		if err != nil {
			return nil
		}
		numbers[i] = number
	}
	return &RequestLimit{numbers[0], numbers[1], time.Duration(numbers[2]) * time.Second}
}

// entries returns the entries of all pages. The first page is that of a nil cursor.
func entries[Data, Item any](
	operation string, getPage func(cursor *string) (*Page[Data], error), itemsOf func(Data) []Item,
) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		for cursor := (*string)(nil); ; {
			page, err := getPage(cursor)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range itemsOf(page.Data) {
				if !yield(item, nil) {
					return
				}
			}
			if !page.Pagination.HasMore {
				return
			}
			next := page.Pagination.Cursor
			// Otherwise the same page would be returned for ever.
			if next == nil || (cursor != nil && *next == *cursor) {
				yield(none, &Error{
					Type:      ErrInvalidAnswer,
					Operation: operation,
					Detail:    "The list has no next page, but more entries.",
					Status:    http.StatusOK,
					RequestID: page.RequestID,
				})
				return
			}
			cursor = next
		}
	}
}
