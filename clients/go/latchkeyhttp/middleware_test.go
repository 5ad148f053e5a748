package latchkeyhttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/latchkeyhttp"
)

const (
	keyText = "prod_3kAqEg4u4qMxCGFAVMuGsb3cijGp"
	valid   = `{"valid":true,"code":"VALID","keyId":"key_1","apiId":"api_1"}`
)

var apis = []string{"api_1"}

// fake answers calls with these data, in turn, the last again and again; without any, the service is away.
type fake struct {
	data []string
	sent []string
}

func (f *fake) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	f.sent = append(f.sent, string(body))
	if len(f.data) == 0 {
		return nil, errors.New("connection refused")
	}
	text := `{"meta":{"requestId":"req_1"},"data":` + f.data[min(len(f.sent), len(f.data))-1] + `}`
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

func answering(t *testing.T, data ...string) (*latchkey.Client, *fake) {
	t.Helper()
	transport := &fake{data: data}
	client := newClient(t, latchkey.WithURL("http://service.test"), latchkey.WithHTTPClient(&http.Client{Transport: transport}))
	return client, transport
}

func withKey(headers ...string) *http.Request {
	request := httptest.NewRequest(http.MethodGet, "/documents/7", nil)
	request.Header.Set("Authorization", "Bearer "+keyText)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return request
}

func serve(handler http.Handler, request *http.Request) *httptest.ResponseRecorder {
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response
}

// exhausted answers as a service to which too many unknown keys were sent.
type exhausted struct{}

func (exhausted) RoundTrip(*http.Request) (*http.Response, error) {
	text := `{"meta":{"requestId":"req_1"},"error":{"type":"/errors/application/lookups_exhausted","detail":"too many","status":503}}`
	return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// busy answers as a service over its limit of requests.
type busy struct{ calls int }

func (b *busy) RoundTrip(*http.Request) (*http.Response, error) {
	b.calls++
	text := `{"meta":{"requestId":"req_1"},"error":{"type":"/errors/user/too_many_requests","detail":"too many","status":429}}`
	header := http.Header{"Retry-After": {"2"}}
	return &http.Response{StatusCode: 429, Header: header, Body: io.NopCloser(strings.NewReader(text))}, nil
}

func TestAServiceOverItsLimitIsNotWaitedFor(t *testing.T) {
	service := &busy{}
	client := newClient(t, latchkey.WithURL("http://service.test"), latchkey.WithHTTPClient(&http.Client{Transport: service}))
	ignore := func(*http.Request, error) {}
	for name, middleware := range map[string]func(http.Handler) http.Handler{
		"verify": latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis, OnError: ignore}),
		"hold": latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
			APIs: apis, OnError: ignore, Hold: &latchkeyhttp.HoldOptions{},
		}),
		"ratelimit": latchkeyhttp.Ratelimit(client, latchkeyhttp.RatelimitOptions{
			Namespace: "n", Limit: 1, Duration: time.Second, Identifier: latchkeyhttp.ByAddress, OnError: ignore,
		}),
	} {
		service.calls = 0
		response := serve(middleware(keyID), withKey())
		if response.Code != 503 || response.Header().Get("Retry-After") != "2" || service.calls != 1 {
			t.Errorf("%s: %d calls, %v", name, service.calls, response)
		}
	}
}

func TestInventedKeysDoNotOpenTheApplication(t *testing.T) {
	client := newClient(t, latchkey.WithURL("http://service.test"), latchkey.WithHTTPClient(&http.Client{Transport: exhausted{}}))
	options := latchkeyhttp.VerifyOptions{APIs: apis, FailOpen: true, OnError: func(*http.Request, error) {}}
	if response := serve(latchkeyhttp.Verify(client, options)(keyID), withKey()); response.Code != 503 {
		t.Errorf("status %d: %s", response.Code, response.Body)
	}
}

// keyID answers with the id of the verified key.
var keyID = http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
	key, ok := latchkeyhttp.KeyFrom(request.Context())
	_, _ = fmt.Fprint(response, ok, key.KeyID)
})

func TestOptionsThatCannotBeUsedPanicWithTheirName(t *testing.T) {
	client, _ := answering(t, valid)
	verify := func(options latchkeyhttp.VerifyOptions) func() {
		return func() { latchkeyhttp.Verify(client, options) }
	}
	limit := func(change func(*latchkeyhttp.RatelimitOptions)) func() {
		options := latchkeyhttp.RatelimitOptions{Namespace: "n", Duration: time.Second, Identifier: latchkeyhttp.ByOwner}
		change(&options)
		return func() { latchkeyhttp.Ratelimit(client, options) }
	}
	key := func(*http.Request) string { return keyText }
	for i, test := range []struct {
		name  string
		start func()
	}{
		{"client", func() { latchkeyhttp.Verify(nil, latchkeyhttp.VerifyOptions{APIs: apis}) }},
		{"APIs", verify(latchkeyhttp.VerifyOptions{})},
		{"APIs", verify(latchkeyhttp.VerifyOptions{APIs: []string{"api_1", ""}})},
		{"Header", verify(latchkeyhttp.VerifyOptions{APIs: apis, Header: "X-Key\r\nX: 1"})},
		{"VerifyOptions.Key", verify(latchkeyhttp.VerifyOptions{APIs: apis, Header: "X-Key", Key: key})},
		{"client", func() { latchkeyhttp.Ratelimit(nil, latchkeyhttp.RatelimitOptions{}) }},
		{"Namespace", limit(func(o *latchkeyhttp.RatelimitOptions) { o.Namespace = "" })},
		{"Duration", limit(func(o *latchkeyhttp.RatelimitOptions) { o.Duration = 0 })},
		{"Duration", limit(func(o *latchkeyhttp.RatelimitOptions) { o.Duration = 1500 * time.Microsecond })},
		{"Identifier", limit(func(o *latchkeyhttp.RatelimitOptions) { o.Identifier = nil })},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, test.name) {
					t.Errorf("case %d: %s", i, text)
				}
			}()
			test.start()
		}()
	}
}

func TestAFunctionFindsTheKey(t *testing.T) {
	client, transport := answering(t, valid, `{"valid":false,"code":"NOT_FOUND"}`)
	found := ""
	handler := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
		APIs: apis, Key: func(*http.Request) string { return found },
	})(keyID)
	for key, expected := range map[string]string{
		"":                       `MISSING ApiKey realm="api"`,
		"a b":                    `MALFORMED ApiKey realm="api", error="invalid_request"`,
		keyText + "\n":           `MALFORMED ApiKey realm="api", error="invalid_request"`,
		strings.Repeat("k", 513): `MALFORMED ApiKey realm="api", error="invalid_request"`,
	} {
		found = key
		response := serve(handler, withKey())
		header := response.Header()
		if text := header.Get("X-Latchkey-Code") + " " + header.Get("WWW-Authenticate"); text != expected || response.Code != 401 {
			t.Errorf("%q: %d %s", key, response.Code, text)
		}
	}
	if len(transport.sent) != 0 {
		t.Errorf("sent %v", transport.sent)
	}
	found = keyText
	if response := serve(handler, withKey()); response.Body.String() != "truekey_1" {
		t.Error(response)
	}
	if response := serve(handler, withKey()); response.Header().Get("WWW-Authenticate") != `ApiKey realm="api", error="invalid_token"` {
		t.Error(response.Header())
	}
}

func TestAHostileKeyTakesNoTimeToReject(t *testing.T) {
	client, transport := answering(t, valid)
	handler := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis})(keyID)
	startedAt := time.Now()
	for _, value := range []string{
		"Bearer " + strings.Repeat(" ", 1_000_000) + "x y",
		strings.Repeat("Bearer", 200_000),
		"Bearer " + strings.Repeat("k", 1_000_000),
	} {
		if response := serve(handler, withKey("Authorization", value)); response.Code != 401 || response.Body.Len() > 1000 {
			t.Error(response.Code, response.Body.Len())
		}
	}
	if length := time.Since(startedAt); length > 5*time.Second || len(transport.sent) != 0 {
		t.Error(length, transport.sent)
	}
}

func TestAnUnknownAnswerRejectsTheRequest(t *testing.T) {
	for _, data := range []string{
		`{}`, `[]`, `{"valid":"true","code":"VALID"}`, `{"valid":false,"code":"VALID"}`, `{"valid":true,"code":"NEW"}`,
		`{"valid":false,"code":"NEW\r\nSet-Cookie: a=b"}`,
	} {
		client, _ := answering(t, data)
		var failure error
		handler := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
			APIs: apis, FailOpen: true, OnError: func(_ *http.Request, err error) { failure = err },
		})(keyID)
		response := serve(handler, withKey())
		if response.Code != 503 || failure == nil || response.Header().Get("Set-Cookie") != "" {
			t.Error(data, response, failure)
		}
	}
	for _, data := range []string{`{}`, `[]`, `null`, `{"success":false}`} {
		client, _ := answering(t, data)
		var failure error
		handler := latchkeyhttp.Ratelimit(client, latchkeyhttp.RatelimitOptions{
			Namespace: "n", Limit: 1, Duration: time.Second, Identifier: latchkeyhttp.ByAddress,
			FailOpen: true, OnError: func(_ *http.Request, err error) { failure = err },
		})(keyID)
		if response := serve(handler, withKey()); response.Code != 503 || failure == nil {
			t.Error(data, response, failure)
		}
	}
	client, _ := answering(t, `{"valid":true,"code":"NOT_FOUND"}`)
	handler := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis})(keyID)
	if response := serve(handler, withKey()); response.Code != 401 {
		t.Error(response)
	}
}

func TestAServiceThatIsAwayIsLoggedWithoutTheKey(t *testing.T) {
	var log bytes.Buffer
	earlier := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(earlier)
	client, _ := answering(t)
	handler := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis})(keyID)
	if response := serve(handler, withKey()); response.Code != 503 || response.Header().Get("Retry-After") != "1" {
		t.Error(response)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "connection refused") || strings.Contains(text, keyText) {
		t.Error(text)
	}

	log.Reset()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if response := serve(handler, withKey().WithContext(ctx)); response.Code != 503 || log.Len() != 0 {
		t.Error(response, log.String())
	}
}

func TestFailOpenLetsRequestsPassBothVerificationAndLimit(t *testing.T) {
	client, transport := answering(t)
	ignore := func(*http.Request, error) {}
	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis, FailOpen: true, OnError: ignore})
	limit := func(failOpen bool) func(http.Handler) http.Handler {
		return latchkeyhttp.Ratelimit(client, latchkeyhttp.RatelimitOptions{
			Namespace: "n", Limit: 1, Duration: time.Second, Identifier: latchkeyhttp.ByOwner, FailOpen: failOpen, OnError: ignore,
		})
	}
	if response := serve(verify(limit(true)(keyID)), withKey()); response.Body.String() != "false" || len(transport.sent) != 1 {
		t.Error(response, transport.sent)
	}
	if response := serve(verify(limit(false)(keyID)), withKey()); response.Code != 503 {
		t.Error(response)
	}
	// Without Verify, every request would pass.
	if response := serve(limit(true)(keyID), withKey()); response.Code != 503 {
		t.Error(response)
	}
}

func TestInputChangesWhatIsSent(t *testing.T) {
	client, transport := answering(t, valid, `{"success":true,"limit":5,"remaining":4,"reset":0}`)
	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
		APIs: apis, Tags: []string{"region=eu"}, Address: func(*http.Request) string { return "192.0.2.1" },
		Input: func(request *http.Request, input *latchkey.VerifyKeyInput) error {
			input.Permissions = latchkey.Ptr("documents." + request.Method)
			input.Credits = &latchkey.VerifyKeyInputCredits{Cost: 0}
			return nil
		},
	})
	limit := latchkeyhttp.Ratelimit(client, latchkeyhttp.RatelimitOptions{
		Namespace: "n", Limit: 1, Duration: time.Second, Identifier: latchkeyhttp.ByOwner,
		Input: func(_ *http.Request, input *latchkey.LimitInput) error {
			input.Limit = 5
			return nil
		},
	})
	serve(verify(limit(keyID)), withKey())
	expected := []string{
		`{"keyspaces":["api_1"],"permissions":"documents.GET","tags":["region=eu","method=GET"],"credits":{"cost":0},"clientIp":"192.0.2.1","key":"` + keyText + `"}`,
		`{"namespace":"n","identifier":"key_1","limit":5,"duration":1000}`,
	}
	if fmt.Sprint(transport.sent) != fmt.Sprint(expected) {
		t.Errorf("sent %v", transport.sent)
	}
}

func TestAFunctionThatFailsRejectsTheRequest(t *testing.T) {
	client, transport := answering(t, valid)
	failure := errors.New("no such tenant")
	nothing := func(*http.Request) string { return "" }
	for name, middleware := range map[string]func(func(*http.Request, error)) func(http.Handler) http.Handler{
		"Input": func(onError func(*http.Request, error)) func(http.Handler) http.Handler {
			return latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
				APIs: apis, FailOpen: true, OnError: onError,
				Input: func(*http.Request, *latchkey.VerifyKeyInput) error { return failure },
			})
		},
		"Address": func(onError func(*http.Request, error)) func(http.Handler) http.Handler {
			return latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis, FailOpen: true, OnError: onError, Address: nothing})
		},
		"Identifier": func(onError func(*http.Request, error)) func(http.Handler) http.Handler {
			return latchkeyhttp.Ratelimit(client, latchkeyhttp.RatelimitOptions{
				Namespace: "n", Duration: time.Second, FailOpen: true, OnError: onError, Identifier: latchkeyhttp.ByAddressOf(nothing),
			})
		},
	} {
		var reported error
		response := serve(middleware(func(_ *http.Request, err error) { reported = err })(keyID), withKey())
		isNamed := errors.Is(reported, failure) || (reported != nil && strings.Contains(reported.Error(), name))
		if response.Code != 503 || !isNamed {
			t.Error(name, response, reported)
		}
	}
	if len(transport.sent) != 0 {
		t.Errorf("sent %v", transport.sent)
	}
}

func TestARequestThatComesByAgainIsVerifiedOnce(t *testing.T) {
	client, transport := answering(t, strings.Replace(valid, "}",
		`,"ratelimits":[{"id":"rl_1","name":"a","limit":2,"duration":1000,"autoApply":true,"exceeded":false,"remaining":1,"reset":0}]}`, 1))
	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis})
	mux := http.NewServeMux()
	mux.Handle("GET /documents/{id}", verify(keyID))
	response := serve(verify(mux), withKey())
	if response.Body.String() != "truekey_1" || response.Header().Get("RateLimit") != `"a";r=1;t=0;pk=:DAjb1K22Rywb:` || len(transport.sent) != 1 {
		t.Error(response, transport.sent)
	}
	var sent struct{ Tags []string }
	if err := json.Unmarshal([]byte(transport.sent[0]), &sent); err != nil || fmt.Sprint(sent.Tags) != "[path=/documents/{id} method=GET]" {
		t.Error(err, sent.Tags)
	}
	other := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis})
	serve(verify(other(keyID)), withKey())
	if len(transport.sent) != 3 {
		t.Errorf("%d calls for two middlewares", len(transport.sent)-1)
	}
}

func TestLimitsAreJoinedWithHeadersOfTheHandler(t *testing.T) {
	const own = `"own";r=5`
	limited := strings.Replace(valid, "}", `,"ratelimits":[{"id":"rl_1","name":"a","limit":2,"duration":1000,"autoApply":true,"exceeded":false,"remaining":1,"reset":0}]}`, 1)
	client, _ := answering(t, limited)
	limits, _ := answering(t, `{"success":true,"limit":9,"remaining":8,"reset":0}`)
	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: apis})
	limit := latchkeyhttp.Ratelimit(limits, latchkeyhttp.RatelimitOptions{
		Namespace: "n", Limit: 9, Duration: time.Second, Identifier: func(*http.Request) (string, error) { return "b", nil },
	})
	both := `^"a";r=1;[^"]*, "n";r=8;[^"]*`
	for name, each := range map[string]struct {
		handle   func(http.ResponseWriter)
		expected string
	}{
		"nothing":         {func(http.ResponseWriter) {}, both + "$"},
		"nothing is sent": {func(w http.ResponseWriter) { w.Header().Set("RateLimit", own) }, both + `, "own";r=5$`},
		"status": {func(w http.ResponseWriter) {
			w.Header().Set("RateLimit", own)
			w.WriteHeader(http.StatusNoContent)
		}, both + `, "own";r=5$`},
		"written": {func(w http.ResponseWriter) {
			w.Header().Set("RateLimit", own)
			_, _ = io.WriteString(w, "hello")
		}, both + `, "own";r=5$`},
		"copied": {func(w http.ResponseWriter) {
			w.Header().Set("RateLimit", own)
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("hello"))
		}, both + `, "own";r=5$`},
		"flushed": {func(w http.ResponseWriter) {
			w.Header().Set("RateLimit", own)
			w.(http.Flusher).Flush()
		}, both + `, "own";r=5$`},
		"removed": {func(w http.ResponseWriter) { w.Header().Del("RateLimit") }, "^$"},
	} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { each.handle(w) })
		response := serve(verify(limit(handler)), withKey()).Result()
		if header := response.Header.Get("RateLimit"); !regexp.MustCompile(each.expected).MatchString(header) {
			t.Errorf("%s: %s", name, header)
		}
	}
}

func TestOnRejectAnswers(t *testing.T) {
	client, _ := answering(t, `{"valid":false,"code":"DISABLED"}`)
	handler := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
		APIs: apis,
		OnReject: func(response http.ResponseWriter, _ *http.Request, rejection latchkeyhttp.Rejection) {
			http.Error(response, fmt.Sprint(rejection.Code, rejection.RequestID, rejection.Detail), rejection.Status+1)
		},
	})(keyID)
	if response := serve(handler, withKey()); response.Code != 402 || response.Body.String() != "DISABLEDreq_1The API key is disabled.\n" {
		t.Error(response)
	}
}

func TestFewRequestsWaitWhileTheServiceHangs(t *testing.T) {
	const threads = 8
	for _, failOpen := range []bool{false, true} {
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
			requests.Add(1)
			_, _ = io.Copy(io.Discard, request.Body)
			<-request.Context().Done()
		}))
		client := newClient(t, latchkey.WithURL(server.URL), latchkey.WithTimeout(300*time.Millisecond))
		startedAt := time.Now()
		handler := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
			APIs: apis, FailOpen: failOpen, OnError: func(*http.Request, error) {},
		})(keyID)
		expected := http.StatusServiceUnavailable
		if failOpen {
			expected = http.StatusOK
		}
		var left atomic.Int64
		left.Store(300)
		var group sync.WaitGroup
		for range threads {
			group.Add(1)
			go func() {
				defer group.Done()
				for left.Add(-1) >= 0 {
					if response := serve(handler, withKey()); response.Code != expected {
						t.Error(response.Code)
					}
				}
			}()
		}
		group.Wait()
		server.Close()
		// Those that were under way when the fifth timed out, and a probe per second.
		most := int64(5+threads) + int64(time.Since(startedAt)/time.Second)
		if sent := requests.Load(); sent < 5 || sent >= most {
			t.Errorf("%d requests, expected less than %d", sent, most)
		}
	}
}
