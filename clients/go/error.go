package latchkey

import (
	"fmt"
	"strings"
	"time"
)

// ErrorType says what went wrong. The types of the service have a page at /errors/<type> of the service, and
// constants such as [ErrDataKeyNotFound]. A newer service can send a type that has no constant.
//
// A type is an error, so that errors.Is compares it:
//
//	if errors.Is(err, latchkey.ErrDataKeyNotFound) {
type ErrorType string

const (
	// ErrNetwork: no complete answer, because the connection failed. The service may have executed the call.
	ErrNetwork ErrorType = "network_error"
	// ErrTimeout: no complete answer within the time-out. The service may have executed the call.
	ErrTimeout ErrorType = "timeout"
	// ErrCircuitOpen: the call was not sent, because the service left several in a row without an answer.
	ErrCircuitOpen ErrorType = "circuit_open"
	// ErrAborted: the context of the call ended. Its error is wrapped, so that errors.Is finds context.Canceled.
	ErrAborted ErrorType = "aborted"
	// ErrInvalidAnswer: an answer that Latchkey does not send: a redirect, no JSON, one that lacks a member, more
	// than 16 MiB.
	ErrInvalidAnswer ErrorType = "invalid_answer"
)

// Error returns the type itself.
func (t ErrorType) Error() string { return string(t) }

// InputError is one error in the input of a call.
type InputError struct {
	// Path in the schema of the input: /properties/name/maxLength.
	Location string `json:"location"`
	Message  string `json:"message"`
	// How to fix it.
	Fix string `json:"fix,omitzero"`
}

// Error is why a call failed. errors.As finds it:
//
//	var failure *latchkey.Error
//	if errors.As(err, &failure) && failure.Status == 404 {
//
// An option or an input that cannot be used is another error.
type Error struct {
	// Identifies the error.
	Type ErrorType
	// The operation that was called, such as keys.verifyKey.
	Operation string
	// What is wrong with this call and how to fix it.
	Detail string
	// The HTTP status; 0 without an answer.
	Status int
	// Each error in the input, with ErrApplicationInvalidInput.
	Errors []InputError
	// How long to wait before another attempt; 0 if the service did not say.
	RetryAfter time.Duration
	// Identifies the call in the log of the service; empty without an answer of the service.
	RequestID string
	// The cause, if the service did not answer.
	Err error
}

// Error returns the operation, the detail, the first errors in the input with what to do, and the type.
func (e *Error) Error() string {
	return fmt.Sprintf("latchkey: %s: %s (%s)", e.Operation, e.detailWithErrors(), string(e.Type))
}

// How many errors in an input a message names.
const namedMax = 3

func (e *Error) detailWithErrors() string {
	if len(e.Errors) == 0 {
		return e.Detail
	}
	var text strings.Builder
	text.WriteString(strings.TrimSuffix(e.Detail, ".") + ":")
	for _, each := range e.Errors[:min(len(e.Errors), namedMax)] {
		text.WriteString(" " + each.Message + ".")
		if each.Fix != "" {
			text.WriteString(" " + each.Fix)
		}
	}
	if more := len(e.Errors) - namedMax; more > 0 {
		fmt.Fprintf(&text, " And %d more.", more)
	}
	return text.String()
}

// Is returns whether the target is the type of the error.
func (e *Error) Is(target error) bool {
	errorType, ok := target.(ErrorType)
	return ok && errorType == e.Type
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
