package latchkeyhttp

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

const (
	limitsLengthMax = 1024
	partitionBytes  = 9
)

// limitState is a limit after a decision.
type limitState struct {
	name  string
	limit int64
	// Milliseconds; 0: none, or unknown.
	duration int64
	// What it counts. Empty: requests.
	unit      string
	exceeded  bool
	remaining int64
	// When the window ends, Unix time in milliseconds; nil: it has none.
	reset *int64
	// If it is exceeded: milliseconds until the call can pass. Nil: unknown, or never.
	retryAfter *int64
	// What the limit counts for: the id of a key or of an identity, or an identifier. Empty: unknown.
	partition string
}

// limitsOf returns the limits in the answer to a verification.
func limitsOf(data latchkey.VerifyKeyOutput) []limitState {
	partition := func(isShared bool) string {
		switch {
		case !isShared:
			return data.KeyID
		case data.Identity != nil:
			return data.Identity.ID
		}
		return ""
	}
	var states []limitState
	for _, l := range data.Ratelimits {
		// A limit in shadow mode denies nothing, and clients need not know it.
		if l.Shadow {
			continue
		}
		states = append(states, limitState{
			name: l.Name, limit: l.Limit, duration: l.Duration, exceeded: l.Exceeded, remaining: l.Remaining,
			reset: &l.Reset, retryAfter: l.RetryAfter, partition: partition(l.From == "identity"),
		})
	}
	for _, l := range data.Concurrency {
		states = append(states, limitState{
			name: l.Name, limit: l.Limit, unit: "concurrent-requests", exceeded: l.Exceeded,
			remaining: max(0, l.Limit-l.InUse), retryAfter: l.RetryAfter, partition: partition(l.From == "identity"),
		})
	}
	return states
}

// share returns what remains of the limit, from 0 to 1; -1 for the one that was exceeded.
func (l limitState) share() float64 {
	if l.exceeded {
		return -1
	}
	return float64(l.remaining) / float64(max(1, l.limit))
}

// secondsLeft returns the seconds until the limit admits more, rounded up; false if they are unknown. Retry-After must not
// be earlier.
func (l limitState) secondsLeft(now time.Time) (int64, bool) {
	wait := int64(math.MaxInt64)
	if l.reset != nil {
		wait = *l.reset - now.UnixMilli()
	}
	if l.exceeded && l.retryAfter != nil {
		wait = min(wait, *l.retryAfter)
	}
	return max(0, ceilSeconds(wait)), wait != math.MaxInt64
}

// limitHeader returns the fields of draft-ietf-httpapi-ratelimit-headers-10, the tightest limit first. Limits that do not
// fit are left out.
func limitHeader(limits []limitState, now time.Time) http.Header {
	slices.SortStableFunc(limits, func(a, b limitState) int { return cmp.Compare(a.share(), b.share()) })
	var policies, states []string
	length := 0
	for _, l := range limits {
		item, pk := `"`+encoded(l.name)+`"`, ""
		if l.partition != "" {
			pk = ";pk=" + partitionKey(l.partition)
		}
		policy := fmt.Sprintf("%s;q=%d", item, l.limit)
		if l.unit != "" {
			policy += fmt.Sprintf(`;qu="%s"`, l.unit)
		}
		if l.duration > 0 {
			policy += fmt.Sprintf(";w=%d", ceilSeconds(l.duration))
		}
		policy += pk
		length += len(policy) + 2
		if length > limitsLengthMax && len(policies) > 0 {
			break
		}
		policies = append(policies, policy)
		state := fmt.Sprintf("%s;r=%d", item, l.remaining)
		if seconds, ok := l.secondsLeft(now); ok {
			state += fmt.Sprintf(";t=%d", seconds)
		}
		states = append(states, state+pk)
	}
	header := http.Header{}
	if len(policies) > 0 {
		header.Set("RateLimit-Policy", strings.Join(policies, ", "))
		header.Set("RateLimit", strings.Join(states, ", "))
	}
	return header
}

// partitionKey returns the key of a partition as a Byte Sequence of RFC 9651. It is a digest, because identifiers can be
// addresses and names.
func partitionKey(partition string) string {
	sum := sha256.Sum256([]byte(partition))
	return ":" + base64.StdEncoding.EncodeToString(sum[:partitionBytes]) + ":"
}

// ceilSeconds rounds milliseconds up to seconds.
func ceilSeconds(milliseconds int64) int64 {
	seconds := milliseconds / 1000
	if milliseconds%1000 > 0 {
		seconds++
	}
	return seconds
}

// encoded percent-encodes a text as encodeURIComponent of JavaScript does, so that no character of it has a meaning in a
// header.
func encoded(text string) string {
	var result strings.Builder
	for _, character := range []byte(text) {
		isLetter := 'a' <= character && character <= 'z' || 'A' <= character && character <= 'Z'
		if isLetter || '0' <= character && character <= '9' || strings.IndexByte("-_.!~*'()", character) >= 0 {
			result.WriteByte(character)
		} else {
			fmt.Fprintf(&result, "%%%02X", character)
		}
	}
	return result.String()
}
