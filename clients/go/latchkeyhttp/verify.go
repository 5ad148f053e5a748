// Package latchkeyhttp protects net/http handlers: [Verify] accepts only requests with a valid key, [Ratelimit] limits
// requests.
//
//	client, err := latchkey.New()
//	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: []string{"api_123"}})
//	http.Handle("GET /documents/{id}", verify(documents))
//
// A request is answered as /auth/verify of the service would answer a proxy.
package latchkeyhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

const (
	keyLengthMax = 512
	tagLengthMax = 128
)

var (
	// A key in a request: printable, without space and comma, because proxies join repeated headers by commas.
	keyForm    = regexp.MustCompile(`^[\x21-\x2b\x2d-\x7e]+$`)
	headerForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	methodForm = regexp.MustCompile(`^[A-Z]{1,20}$`)
)

// VerifyOptions are the options of [Verify].
type VerifyOptions struct {
	// The ids of the APIs whose keys are accepted. Required.
	APIs []string
	// A permission query that the key must satisfy, such as documents.read AND (admin OR billing.write).
	Permissions string
	// The credits of a request, if the key has a balance. Nil: 1. 0: check without charging.
	Cost *int64
	// Holds the cost while the handler answers, and charges what the answer did cost when it has ended. Needs a root key.
	// Nil: the cost is charged before.
	Hold *HoldOptions
	// The limits to charge, by name; with Limit and Duration, a limit of its own, which needs a root key. Nil: those of
	// the key and its identity with autoApply.
	Limits []latchkey.VerifyKeyInputRatelimit
	// The header with the key alone. Empty: Authorization, as "Bearer <key>".
	Header string
	// Finds the key elsewhere. An empty text: the request has none.
	Key func(*http.Request) string
	// The address of the end user, for the allow-list of the API, which needs a root key. A header such as
	// X-Forwarded-For is only as true as the proxy that sets it. An empty text rejects the request.
	Address func(*http.Request) string
	// The route in the analytics, as the tag path=…. Empty: the pattern of http.ServeMux.
	Path string
	// Other tags in the analytics. Method and route are always sent.
	Tags []string
	// Changes what is sent for a request, such as its cost. An error rejects the request.
	Input func(*http.Request, *latchkey.VerifyKeyInput) error
	// Whether requests pass while the service cannot be reached or fails; [KeyFrom] then returns false. Otherwise they
	// are answered with 503. A wrong configuration, such as an unknown root key, never lets requests pass.
	FailOpen bool
	// Called when a request could not be decided, with the reason. Nil: slog prints it.
	OnError func(*http.Request, error)
	// Answers a request that is rejected. Nil: [Rejection.Write].
	OnReject func(http.ResponseWriter, *http.Request, Rejection)
}

// Verify returns middleware that verifies the key of each request before it calls the handler. A request that comes by
// again is not verified again. It panics if an option cannot be used, with a text that names the option.
func Verify(client *latchkey.Client, options VerifyOptions) func(http.Handler) http.Handler {
	if client == nil {
		panic("latchkeyhttp: the client is nil: give one from latchkey.New")
	}
	if len(options.APIs) == 0 || slices.Contains(options.APIs, "") {
		panic(`latchkeyhttp: VerifyOptions.APIs is missing: give the id of the API whose keys are accepted, such as "api_123"`)
	}
	if options.Header != "" && options.Key != nil {
		panic("latchkeyhttp: VerifyOptions.Header and VerifyOptions.Key exclude each other")
	}
	if options.Header == "" {
		options.Header = "Authorization"
	}
	if !headerForm.MatchString(options.Header) {
		panic("latchkeyhttp: VerifyOptions.Header must be the name of a header")
	}
	if options.Hold != nil {
		if err := options.Hold.times(nil).Check(); err != nil {
			panic("latchkeyhttp: VerifyOptions.Hold: " + err.Error())
		}
	}
	if options.OnError == nil {
		options.OnError = logError
	}
	v := verifier{client, options}
	return decider{
		decide:    v.decide,
		undecided: "The API key cannot be verified right now. Try again shortly.",
		failOpen:  options.FailOpen,
		onError:   options.OnError,
		onReject:  options.OnReject,
	}.middleware()
}

// withoutWait is for all calls: requests that wait for a service over its limit would pile up.
var withoutWait = latchkey.WithRetryWaitMax(0)

type verifier struct {
	client  *latchkey.Client
	options VerifyOptions
}

func (v verifier) decide(request *http.Request, pattern string) (decision, error) {
	key, rejection := v.findKey(request)
	if rejection != nil {
		return decision{rejection: rejection}, nil
	}
	input, err := v.input(request, key, pattern)
	if err != nil {
		return decision{}, err
	}
	result, held, err := v.verify(request, input)
	if err != nil {
		return decision{}, err
	}
	data := result.Data
	header := limitHeader(limitsOf(data), time.Now())
	if data.Valid && data.Code == latchkey.VerifyKeyCodeValid {
		return decision{key: &data, header: header, held: held}, nil
	}
	detail, isKnown := details[data.Code]
	if !isKnown {
		return decision{}, fmt.Errorf("latchkeyhttp: the service answered with an unknown code: %q", data.Code)
	}
	refused := newRejection(Code(data.Code), detail)
	refused.RequestID = result.RequestID
	for name, values := range header {
		refused.Header[name] = values
	}
	if refused.Status == http.StatusUnauthorized {
		refused.challenge(v.place(), "invalid_token")
	}
	if data.Code == latchkey.VerifyKeyCodeRateLimited && data.RetryAfter != nil {
		refused.retryAfter(time.Duration(*data.RetryAfter) * time.Millisecond)
	}
	return decision{rejection: &refused}, nil
}

// verify calls the service. The answer is nil without a hold.
func (v verifier) verify(
	request *http.Request, input latchkey.VerifyKeyInput,
) (*latchkey.Result[latchkey.VerifyKeyOutput], *heldAnswer, error) {
	options := v.options.Hold
	if options == nil {
		result, err := v.client.Keys.VerifyKey(request.Context(), input, withoutWait)
		return result, nil, err
	}
	onError := func(err error) {
		// It is called after the request too, where a panic would end the program.
		defer func() {
			if thrown := recover(); thrown != nil {
				slog.Error("latchkeyhttp: VerifyOptions.OnError panicked", "panic", thrown, "error", err)
			}
		}()
		v.options.OnError(request, err)
	}
	hold, result, err := v.client.Hold(request.Context(), input, options.times(onError), withoutWait)
	if err != nil || hold == nil {
		return result, nil, err
	}
	return result, &heldAnswer{hold: hold, settle: options.Settle, onError: onError, request: request}, nil
}

func (v verifier) input(request *http.Request, key, pattern string) (latchkey.VerifyKeyInput, error) {
	o := v.options
	input := latchkey.VerifyKeyInput{
		Key:        latchkey.NewSecret(key),
		Keyspaces:  slices.Clone(o.APIs),
		Ratelimits: slices.Clone(o.Limits),
		Tags:       slices.Clone(o.Tags),
	}
	if o.Permissions != "" {
		input.Permissions = &o.Permissions
	}
	if o.Cost != nil {
		input.Credits = &latchkey.VerifyKeyInputCredits{Cost: *o.Cost}
	}
	if o.Path != "" {
		pattern = o.Path
	}
	if pattern != "" {
		input.Tags = append(input.Tags, shortened("path="+pattern))
	}
	if methodForm.MatchString(request.Method) {
		input.Tags = append(input.Tags, "method="+request.Method)
	}
	if o.Address != nil {
		address := o.Address(request)
		if address == "" {
			return input, fmt.Errorf("latchkeyhttp: VerifyOptions.Address returned nothing for a request")
		}
		input.ClientIP = &address
	}
	if o.Input != nil {
		return input, o.Input(request, &input)
	}
	return input, nil
}

// place returns the header with the key; an empty text if it is elsewhere.
func (v verifier) place() string {
	if v.options.Key != nil {
		return ""
	}
	return v.options.Header
}

func (v verifier) findKey(request *http.Request) (string, *Rejection) {
	if v.options.Key != nil {
		key := v.options.Key(request)
		switch {
		case key == "":
			return "", v.refuse(CodeMissing, "The request has no API key.")
		case !isKey(key):
			return "", v.refuse(CodeMalformed, "The API key must have 1 to 512 visible ASCII characters, without commas.")
		}
		return key, nil
	}
	header := v.options.Header
	values := request.Header.Values(header)
	if len(values) == 0 || (len(values) == 1 && strings.TrimSpace(values[0]) == "") {
		return "", v.refuse(CodeMissing, fmt.Sprintf("The request has no API key in the header %s.", header))
	}
	key, form := strings.TrimSpace(values[0]), "the key alone"
	if strings.EqualFold(header, "Authorization") {
		form = "`Bearer <key>`"
		scheme, rest, _ := strings.Cut(key, " ")
		if key = ""; strings.EqualFold(scheme, "Bearer") {
			key = strings.TrimLeft(rest, " ")
		}
	}
	if len(values) == 1 && isKey(key) {
		return key, nil
	}
	detail := fmt.Sprintf("The header %s must be there once, with %s as its value.", header, form)
	return "", v.refuse(CodeMalformed, detail)
}

func (v verifier) refuse(code Code, detail string) *Rejection {
	rejection := newRejection(code, detail)
	problem := ""
	if code == CodeMalformed {
		problem = "invalid_request"
	}
	rejection.challenge(v.place(), problem)
	return &rejection
}

// isKey returns whether a text can be a key. A header can have 1 MiB, which an expression would read slowly.
func isKey(text string) bool {
	return len(text) <= keyLengthMax && keyForm.MatchString(text)
}

// shortened returns a tag of at most 128 characters.
func shortened(tag string) string {
	characters := []rune(tag)
	return string(characters[:min(len(characters), tagLengthMax)])
}

// verification is what the context of a request has of its key.
type verification struct {
	// Nil if the request passed without a verification.
	key *latchkey.VerifyKeyOutput
}

type verificationKey struct{}

// KeyFrom returns the key that [Verify] accepted. It returns false without one: outside of Verify, or with FailOpen while
// the service is unreachable.
func KeyFrom(ctx context.Context) (latchkey.VerifyKeyOutput, bool) {
	verified, _ := ctx.Value(verificationKey{}).(verification)
	if verified.key == nil {
		return latchkey.VerifyKeyOutput{}, false
	}
	return *verified.key, true
}
