// Package latchkey calls the operations of a Latchkey service. The package latchkeyhttp beside it has middleware.
//
//	client, err := latchkey.New() // The address and the root key are LATCHKEY_URL and LATCHKEY_ROOT_KEY.
//	result, err := client.Keys.VerifyKey(ctx, latchkey.VerifyKeyInput{Key: latchkey.NewSecret(key)})
//	if err == nil && !result.Data.Valid {
//		log.Println("rejected:", result.Data.Code)
//	}
//
// In an input, a nil pointer, list or map, a zero Secret and a zero [Nullable] are omitted. A list that is not
// nil is sent even if it is empty. In an answer, numbers and objects that can be absent are pointers.
package latchkey

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	timeoutDefault      = 2 * time.Second
	timeoutMax          = 24 * time.Hour
	retriesDefault      = 2
	retriesMax          = 10
	retryWaitMaxDefault = 5 * time.Second
	// Shorter than the service and load balancers keep an idle connection open, so that no call meets its end.
	idleConnectionTimeout = 30 * time.Second
	idleConnectionsMax    = 100
	headerBytesMax        = 1 << 20
)

// Client calls the operations of a service. Several goroutines can use it at the same time. Create it once, with
// [New], because it keeps connections open.
type Client struct {
	Operations
	holds *holdCount
}

// Option is an option of a client, for [New].
type Option interface{ applyToClient(*settings) }

// CallOption is an option of one call. It replaces that of the client.
type CallOption interface{ applyToCall(*callSettings) }

// SharedOption is an option of a client or of one call.
type SharedOption func(*callSettings)

func (o SharedOption) applyToClient(s *settings)   { o(&s.call) }
func (o SharedOption) applyToCall(s *callSettings) { o(s) }

type clientOption func(*settings)

func (o clientOption) applyToClient(s *settings) { o(s) }

type callOption func(*callSettings)

func (o callOption) applyToCall(s *callSettings) { o(s) }

type settings struct {
	url          string
	rootKey      Secret
	breakerIsOff bool
	onRequest    func(context.Context, Attempt)
	onResponse   func(context.Context, AttemptEnd)
	httpClient   *http.Client
	call         callSettings
}

type callSettings struct {
	timeout        time.Duration
	retries        int
	retryWaitMax   time.Duration
	retryCharges   bool
	idempotencyKey string
}

// WithURL sets the address of the service, such as https://keys.example.com. Default: LATCHKEY_URL of the
// environment.
func WithURL(address string) Option {
	return clientOption(func(s *settings) { s.url = address })
}

// WithRootKey sets the root key. Default: LATCHKEY_ROOT_KEY of the environment. Without one, only keys can be
// verified, if the service allows it.
func WithRootKey(rootKey Secret) Option {
	return clientOption(func(s *settings) { s.rootKey = rootKey })
}

// WithTimeout sets how long one attempt may take, with its answer: 1 ms to 24 h. Default: 2 s. The context of a
// call limits the call with all of its attempts.
func WithTimeout(timeout time.Duration) SharedOption {
	return func(s *callSettings) { s.timeout = timeout }
}

// WithRetries sets the number of further attempts after a failed one, 0 to 10. Default: 2. A call that creates or
// charges something is retried only if the service recognizes the repetition: it then carries an Idempotency-Key.
func WithRetries(retries int) SharedOption {
	return func(s *callSettings) { s.retries = retries }
}

// WithRetryCharges sets whether calls that charge limits or credits (keys.verifyKey, ratelimits.limit,
// ratelimits.multiLimit) carry an Idempotency-Key too, so that they are retried. Default: false. The service stores
// a record of each such call for a day, at most 100,000 per workspace with its default settings.
func WithRetryCharges(retryCharges bool) SharedOption {
	return func(s *callSettings) { s.retryCharges = retryCharges }
}

// WithIdempotencyKey identifies a call for 24 hours: a repetition with the same key and input returns the outcome
// of the first call. It has 1 to 255 visible ASCII characters. Default: a random one, if the operation supports it
// and the call is to be retried.
func WithIdempotencyKey(key string) CallOption {
	return callOption(func(s *callSettings) { s.idempotencyKey = key })
}

// WithRetryWaitMax sets the longest Retry-After that a call waits for, 0 to 24 h. Longer: it fails at once. Default:
// 5 s. The middleware waits for none.
func WithRetryWaitMax(wait time.Duration) SharedOption {
	return func(s *callSettings) { s.retryWaitMax = wait }
}

// WithCircuitBreaker sets whether calls fail at once, with [ErrCircuitOpen], after 5 attempts in a row that timed out.
// One attempt per second is then sent as a probe, and any answer lets all calls pass again. Default: true.
func WithCircuitBreaker(isOn bool) Option {
	return clientOption(func(s *settings) { s.breakerIsOff = !isOn })
}

// WithOnRequest sets a function that is called before each attempt. Headers that it sets are sent.
func WithOnRequest(hook func(context.Context, Attempt)) Option {
	return clientOption(func(s *settings) { s.onRequest = hook })
}

// WithOnResponse sets a function that is called after each attempt.
func WithOnResponse(hook func(context.Context, AttemptEnd)) Option {
	return clientOption(func(s *settings) { s.onResponse = hook })
}

// WithHTTPClient sets what sends the requests. Its CheckRedirect is not used: redirects are not followed, so that
// the root key reaches no other host.
func WithHTTPClient(client *http.Client) Option {
	return clientOption(func(s *settings) { s.httpClient = client })
}

// visible is what a header can have as its value.
var visible = regexp.MustCompile(`^[\x21-\x7e]+$`)

// New returns a client. Without options, the address and the root key are read from the environment: LATCHKEY_URL
// and LATCHKEY_ROOT_KEY. The error of an option that cannot be used names it.
func New(options ...Option) (*Client, error) {
	s := settings{
		url:        os.Getenv("LATCHKEY_URL"),
		rootKey:    NewSecret(os.Getenv("LATCHKEY_ROOT_KEY")),
		httpClient: &http.Client{Transport: newTransport()},
		call:       callSettings{timeout: timeoutDefault, retries: retriesDefault, retryWaitMax: retryWaitMaxDefault},
	}
	for _, option := range options {
		option.applyToClient(&s)
	}
	address, err := readAddress(strings.TrimSpace(s.url))
	if err != nil {
		return nil, err
	}
	rootKey := strings.TrimSpace(s.rootKey.Reveal())
	if rootKey != "" && !visible.MatchString(rootKey) {
		return nil, errors.New("latchkey: WithRootKey (LATCHKEY_ROOT_KEY) must be a root key: visible ASCII characters only")
	}
	if s.httpClient == nil {
		return nil, errors.New("latchkey: WithHTTPClient must be a client, not nil")
	}
	if err := s.call.check(); err != nil {
		return nil, err
	}
	sender := *s.httpClient
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	operations := newOperations(&connection{
		url:      address,
		rootKey:  NewSecret(rootKey),
		sender:   &sender,
		settings: s,
		wait:     wait,
		breaker:  &breaker{isOff: s.breakerIsOff, now: time.Now},
	})
	return &Client{operations, &holdCount{}}, nil
}

func readAddress(text string) (string, error) {
	if text == "" {
		return "", errors.New("latchkey: the address of the service is missing: use WithURL, or set LATCHKEY_URL")
	}
	address, err := url.Parse(text)
	if err != nil || (address.Scheme != "http" && address.Scheme != "https") || address.Host == "" ||
		address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		return "", errors.New("latchkey: WithURL (LATCHKEY_URL) must be an address such as https://keys.example.com")
	}
	return strings.TrimRight(address.String(), "/"), nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idleConnectionsMax,
		MaxIdleConnsPerHost:    idleConnectionsMax,
		IdleConnTimeout:        idleConnectionTimeout,
		MaxResponseHeaderBytes: headerBytesMax,
	}
}

func (s callSettings) check() error {
	if s.timeout < time.Millisecond || s.timeout > timeoutMax {
		return fmt.Errorf("latchkey: WithTimeout must be from 1ms to %s", timeoutMax)
	}
	if s.retries < 0 || s.retries > retriesMax {
		return fmt.Errorf("latchkey: WithRetries must be from 0 to %d", retriesMax)
	}
	if s.retryWaitMax < 0 || s.retryWaitMax > timeoutMax {
		return fmt.Errorf("latchkey: WithRetryWaitMax must be from 0 to %s", timeoutMax)
	}
	if s.idempotencyKey != "" && (len(s.idempotencyKey) > 255 || !visible.MatchString(s.idempotencyKey)) {
		return errors.New("latchkey: WithIdempotencyKey must have 1 to 255 visible ASCII characters")
	}
	return nil
}
