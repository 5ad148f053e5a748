package latchkeyhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

// Code is why a request is rejected: the [latchkey.VerifyKeyCode] of the verification, or that there was none.
type Code string

const (
	// CodeMissing: the request has no key.
	CodeMissing Code = "MISSING"
	// CodeMalformed: the key is there twice, or cannot be a key.
	CodeMalformed Code = "MALFORMED"
	// CodeUndecided: the service did not decide. It is unreachable, or the middleware is configured wrongly.
	CodeUndecided Code = "UNDECIDED"
)

// Rejection is the answer to a request that does not reach its handler.
type Rejection struct {
	Code Code
	// 401 without a valid key, 402 for credits, 403 for permissions and addresses, 429 for limits, 503 without a
	// decision.
	Status int
	Detail string
	// Identifies the call in the log of the service; empty without one.
	RequestID string
	Header    http.Header
}

var details = map[latchkey.VerifyKeyCode]string{
	latchkey.VerifyKeyCodeNotFound:                "The API key is not valid.",
	latchkey.VerifyKeyCodeExpired:                 "The API key has expired.",
	latchkey.VerifyKeyCodeDisabled:                "The API key is disabled.",
	latchkey.VerifyKeyCodeForbidden:               "The API key may not be used here.",
	latchkey.VerifyKeyCodeInsufficientPermissions: "The API key lacks a permission.",
	latchkey.VerifyKeyCodeUsageExceeded:           "The API key has too few credits.",
	latchkey.VerifyKeyCodeRateLimited:             "The API key has reached a limit.",
}

func statusOf(code Code) int {
	switch code {
	case CodeUndecided:
		return http.StatusServiceUnavailable
	case Code(latchkey.VerifyKeyCodeUsageExceeded):
		return http.StatusPaymentRequired
	case Code(latchkey.VerifyKeyCodeForbidden), Code(latchkey.VerifyKeyCodeInsufficientPermissions):
		return http.StatusForbidden
	case Code(latchkey.VerifyKeyCodeRateLimited):
		return http.StatusTooManyRequests
	}
	return http.StatusUnauthorized
}

func newRejection(code Code, detail string) Rejection {
	return Rejection{Code: code, Status: statusOf(code), Detail: detail, Header: http.Header{
		"Content-Type":    {"application/json"},
		"Cache-Control":   {"no-store"},
		"X-Latchkey-Code": {string(code)},
	}}
}

// Write sends the rejection, with a body as the service sends it.
func (r Rejection) Write(response http.ResponseWriter) {
	meta := map[string]string{}
	if r.RequestID != "" {
		meta["requestId"] = r.RequestID
	}
	body, err := json.Marshal(map[string]any{"meta": meta, "error": map[string]any{
		"title": http.StatusText(r.Status), "detail": r.Detail, "status": r.Status, "type": "about:blank", "code": r.Code,
	}})
	if err != nil {
		panic(err)
	}
	for name, values := range r.Header {
		response.Header()[name] = values
	}
	response.WriteHeader(r.Status)
	// The end user may have left.
	_, _ = response.Write(body)
}

// challenge sets WWW-Authenticate for a key in a header, or elsewhere (empty), with the error of RFC 6750, section 3.1.
func (r Rejection) challenge(header, problem string) {
	text := `Bearer realm="api"`
	if !strings.EqualFold(header, "Authorization") {
		text = `ApiKey realm="api"`
		if header != "" {
			text += fmt.Sprintf(`, header="%s"`, header)
		}
	}
	if problem != "" {
		text += fmt.Sprintf(`, error="%s"`, problem)
	}
	r.Header.Set("WWW-Authenticate", text)
}

// retryAfter sets Retry-After in whole seconds, at least 1.
func (r Rejection) retryAfter(length time.Duration) {
	r.Header.Set("Retry-After", strconv.FormatInt(max(1, ceilSeconds(length.Milliseconds())), 10))
}
