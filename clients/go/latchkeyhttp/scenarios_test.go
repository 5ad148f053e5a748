package latchkeyhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/internal/scenarios"
	"github.com/latchkey/latchkey/clients/go/latchkeyhttp"
)

// step is one step of the scenarios that the middleware of every language runs: see sdk/test/middleware-scenarios.ts.
type step struct {
	Call    string            `json:"call"`
	Input   any               `json:"input"`
	RootKey *string           `json:"rootKey"`
	Save    map[string]string `json:"save"`

	Request *struct {
		Method  string         `json:"method"`
		Path    string         `json:"path"`
		Headers map[string]any `json:"headers"`
	} `json:"request"`
	Verify    *verifyStep     `json:"verify"`
	Ratelimit *ratelimitStep  `json:"ratelimit"`
	Timeout   int             `json:"timeout"`
	Network   string          `json:"network"`
	Status    int             `json:"status"`
	Headers   map[string]any  `json:"headers"`
	Error     map[string]any  `json:"error"`
	Verified  json.RawMessage `json:"verified"`
	Sent      map[string]any  `json:"sent"`
	Calls     *int            `json:"calls"`
}

type verifyStep struct {
	APIID       any                                `json:"apiId"`
	Permissions string                             `json:"permissions"`
	Cost        *int64                             `json:"cost"`
	Limits      []latchkey.VerifyKeyInputRatelimit `json:"limits"`
	Header      string                             `json:"header"`
	Address     *headerName                        `json:"address"`
	Path        string                             `json:"path"`
	Tags        []string                           `json:"tags"`
	FailOpen    bool                               `json:"failOpen"`
}

type ratelimitStep struct {
	Namespace  string      `json:"namespace"`
	Limit      int64       `json:"limit"`
	Duration   int64       `json:"duration"`
	Cost       *int64      `json:"cost"`
	Identifier any         `json:"identifier"`
	Address    *headerName `json:"address"`
	FailOpen   bool        `json:"failOpen"`
}

// headerName stands for a function that returns a header of the request.
type headerName struct {
	Header string `json:"header"`
}

func (h headerName) function() func(*http.Request) string {
	return func(request *http.Request) string { return request.Header.Get(h.Header) }
}

func TestScenarios(t *testing.T) {
	address, rootKey := scenarios.Service(t)
	network := scenarios.NewNetwork(t, address)
	admin := newClient(t, latchkey.WithURL(address), latchkey.WithRootKey(rootKey))
	api, err := admin.APIs.CreateAPI(t.Context(), latchkey.CreateAPIInput{Name: "middleware"})
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range scenarios.Read[any](t, "../../../sdk/test/middleware-scenarios.json") {
		t.Run(scenario.Name, func(t *testing.T) {
			saved := map[string]any{"apiId": api.Data.APIID}
			for i, raw := range scenario.Steps {
				text, err := json.Marshal(scenarios.Substitute(t, raw, saved))
				if err != nil {
					t.Fatal(err)
				}
				var step step
				scenarios.Decode(t, fmt.Sprintf("step %d", i+1), text, &step)
				key := rootKey
				if step.RootKey != nil {
					key = latchkey.NewSecret(*step.RootKey)
				}
				if step.Request != nil {
					request(t, fmt.Sprintf("step %d", i+1), step, saved, network, key)
					continue
				}
				client := newClient(t, latchkey.WithURL(address), latchkey.WithRootKey(key))
				data, err := scenarios.Call(t, client, step.Call, step.Input, false)
				if err != nil {
					t.Fatal(err)
				}
				for member, name := range step.Save {
					saved[name] = data.(map[string]any)[member]
				}
			}
		})
	}
}

func newClient(t *testing.T, options ...latchkey.Option) *latchkey.Client {
	t.Helper()
	client, err := latchkey.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// recorder keeps the bodies that it sends.
type recorder struct{ sent []map[string]any }

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	r.sent = append(r.sent, members)
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(request)
}

// request sends the request of a step to a handler behind the middleware, and checks the answer.
func request(
	t *testing.T, where string, step step, saved map[string]any, network *scenarios.Network, rootKey latchkey.Secret,
) {
	t.Helper()
	timeout := 10 * time.Second
	if step.Timeout > 0 {
		timeout = time.Duration(step.Timeout) * time.Millisecond
	}
	var record recorder
	client := newClient(t, latchkey.WithURL(network.URL), latchkey.WithRootKey(rootKey),
		latchkey.WithTimeout(timeout), latchkey.WithHTTPClient(&http.Client{Transport: &record}))
	var problems []string
	onError := func(_ *http.Request, err error) { problems = append(problems, err.Error()) }

	calls := 0
	var given any
	var handler http.Handler = http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		calls++
		if key, ok := latchkeyhttp.KeyFrom(request.Context()); ok {
			given = asJSON(t, key)
		}
		_, _ = io.WriteString(response, "{}")
	})
	if step.Ratelimit != nil {
		handler = latchkeyhttp.Ratelimit(client, ratelimitOptions(*step.Ratelimit, onError))(handler)
	}
	if step.Verify != nil {
		handler = latchkeyhttp.Verify(client, verifyOptions(*step.Verify, onError))(handler)
	}
	mux := http.NewServeMux()
	mux.Handle(step.Request.Method+" /documents/{id}", handler)
	server := httptest.NewServer(mux)
	defer server.Close()

	network.Disturb(step.Network)
	answer, body := send(t, server.URL, step)
	network.Disturb("")

	if answer.StatusCode != step.Status {
		t.Fatalf("%s answered %d %s, expected %d", where, answer.StatusCode, body, step.Status)
	}
	checkHeaders(t, where, answer.Header, step)
	checkBody(t, where, answer, body, step)
	isUndecided := step.Error["code"] == "UNDECIDED" || string(step.Verified) == "null"
	if isUndecided != (len(problems) > 0) {
		t.Errorf("%s: the errors are %q", where, problems)
	}
	if step.Error == nil {
		var expected any
		if len(step.Verified) > 0 {
			scenarios.Decode(t, where, step.Verified, &expected)
		}
		if calls != 1 || (expected == nil) != (given == nil) || !scenarios.Contains(given, expected) {
			t.Errorf("%s: the handler was called %d times and got %v, expected %v", where, calls, given, expected)
		}
	} else if calls != 0 {
		t.Errorf("%s: the handler was called", where)
	}
	checkSent(t, where, record.sent, step)
	shown := fmt.Sprint(answer.Header, body, problems)
	if key, ok := saved["key"].(string); ok && strings.Contains(shown, key) {
		t.Errorf("%s shows the key: %s", where, shown)
	}
}

func verifyOptions(step verifyStep, onError func(*http.Request, error)) latchkeyhttp.VerifyOptions {
	options := latchkeyhttp.VerifyOptions{
		Permissions: step.Permissions, Cost: step.Cost, Limits: step.Limits, Header: step.Header, Path: step.Path,
		Tags: step.Tags, FailOpen: step.FailOpen, OnError: onError,
	}
	switch ids := step.APIID.(type) {
	case string:
		options.APIs = []string{ids}
	case []any:
		for _, id := range ids {
			options.APIs = append(options.APIs, id.(string))
		}
	}
	if step.Address != nil {
		options.Address = step.Address.function()
	}
	return options
}

func ratelimitOptions(step ratelimitStep, onError func(*http.Request, error)) latchkeyhttp.RatelimitOptions {
	options := latchkeyhttp.RatelimitOptions{
		Namespace: step.Namespace, Limit: step.Limit, Duration: time.Duration(step.Duration) * time.Millisecond,
		Cost: step.Cost, FailOpen: step.FailOpen, OnError: onError,
	}
	switch identifier := step.Identifier.(type) {
	case string:
		options.Identifier = map[string]func(*http.Request) (string, error){
			"owner": latchkeyhttp.ByOwner, "address": latchkeyhttp.ByAddress,
		}[identifier]
	case map[string]any:
		find := headerName{identifier["header"].(string)}.function()
		options.Identifier = func(request *http.Request) (string, error) { return find(request), nil }
	}
	if step.Address != nil {
		options.Identifier = latchkeyhttp.ByAddressOf(step.Address.function())
	}
	return options
}

func send(t *testing.T, address string, step step) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), step.Request.Method, address+step.Request.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range step.Request.Headers {
		if values, ok := value.([]any); ok {
			for _, each := range values {
				request.Header.Add(name, each.(string))
			}
		} else {
			request.Header.Add(name, value.(string))
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func checkHeaders(t *testing.T, where string, header http.Header, step step) {
	t.Helper()
	expected := map[string]any{"X-Latchkey-Code": nil}
	if step.Status != http.StatusUnauthorized {
		expected["WWW-Authenticate"] = nil
	}
	for name, value := range step.Headers {
		expected[name] = value
	}
	if step.Error != nil {
		expected["X-Latchkey-Code"] = step.Error["code"]
		expected["Content-Type"], expected["Cache-Control"] = "application/json", "no-store"
	}
	for name, value := range expected {
		actual := header.Values(name)
		isAsExpected := false
		switch value := value.(type) {
		case nil:
			isAsExpected = len(actual) == 0
		case string:
			isAsExpected = len(actual) == 1 && actual[0] == value
		case map[string]any:
			isAsExpected = len(actual) == 1 && regexp.MustCompile(value["matches"].(string)).MatchString(actual[0])
		}
		if !isAsExpected {
			t.Errorf("%s: the header %s is %q, expected %v", where, name, actual, value)
		}
	}
}

func checkBody(t *testing.T, where string, answer *http.Response, body string, step step) {
	t.Helper()
	if step.Error == nil {
		return
	}
	var read struct {
		Meta struct {
			RequestID *string `json:"requestId"`
		} `json:"meta"`
		Error map[string]any `json:"error"`
	}
	scenarios.Decode(t, where, []byte(body), &read)
	expected := map[string]any{"status": float64(answer.StatusCode), "type": "about:blank"}
	for name, value := range step.Error {
		expected[name] = value
	}
	if len(read.Error) != 5 || !scenarios.Contains(read.Error, expected) {
		t.Errorf("%s answered %s, expected %v", where, body, expected)
	}
	if id := read.Meta.RequestID; id != nil && !strings.HasPrefix(*id, "req_") {
		t.Errorf("%s: the request id is %q", where, *id)
	}
}

func checkSent(t *testing.T, where string, sent []map[string]any, step step) {
	t.Helper()
	if step.Calls != nil && len(sent) != *step.Calls {
		t.Errorf("%s: %d calls, expected %d", where, len(sent), *step.Calls)
	}
	if step.Sent != nil && (len(sent) == 0 || !scenarios.Contains(sent[len(sent)-1], step.Sent)) {
		t.Errorf("%s: sent %v, expected %v", where, sent, step.Sent)
	}
	if step.Verify != nil && step.Verify.Path == "" && len(sent) > 0 {
		tags := []any{"path=/documents/{id}", "method=" + step.Request.Method}
		if !reflect.DeepEqual(sent[0]["tags"], tags) {
			t.Errorf("%s: the tags are %v", where, sent[0]["tags"])
		}
	}
}

func asJSON(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var read any
	scenarios.Decode(t, "the key", text, &read)
	return read
}
