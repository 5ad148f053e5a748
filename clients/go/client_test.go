package latchkey

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	rootKeyText = "lk_root_7dK2mQx9"
	keyText     = "prod_3kAqEg4u4qMxCGFAVMuGsb3cijGp"
)

type sent struct {
	url    string
	header http.Header
	body   string
}

// transport answers with one function after another, and with the last one again and again.
type transport struct {
	sent    []sent
	answers []func(*http.Request) (*http.Response, error)
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	t.sent = append(t.sent, sent{request.URL.String(), request.Header, string(body)})
	return t.answers[min(len(t.sent), len(t.answers))-1](request)
}

// idempotencyKey returns the Idempotency-Key that was sent.
func (s sent) idempotencyKey() string { return strings.Join(s.header["idempotency-key"], ",") }

// answered returns a client that gets these answers and does not wait between attempts.
func answered(
	t *testing.T, answers []func(*http.Request) (*http.Response, error), options ...Option,
) (*Client, *transport) {
	t.Helper()
	fake := &transport{answers: answers}
	defaults := []Option{
		WithURL("http://service.test"), WithRootKey(NewSecret(rootKeyText)), WithHTTPClient(&http.Client{Transport: fake}),
	}
	client := newClient(t, append(defaults, options...)...)
	client.Keys.connection.wait = func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil }
	return client, fake
}

type respond = func(*http.Request) (*http.Response, error)

func reply(status int, body string, headers ...string) respond {
	return func(*http.Request) (*http.Response, error) {
		header := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			header.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func success(data string, headers ...string) respond {
	page := ""
	if strings.HasPrefix(data, "[") {
		page = `,"pagination":{"hasMore":false}`
	}
	return reply(200, `{"meta":{"requestId":"req_1"},"data":`+data+page+`}`, headers...)
}

func failed(status int, errorType ErrorType, headers ...string) respond {
	body := fmt.Sprintf(
		`{"meta":{"requestId":"req_2"},"error":{"type":"https://a.test/errors/%s","detail":"Not so.","status":%d}}`,
		string(errorType), status)
	return reply(status, body, headers...)
}

func lost(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }

func failureOf(t *testing.T, err error) *Error {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("the error is %v, and no *Error", err)
	}
	return failure
}

func TestSecretsPrintAsRedacted(t *testing.T) {
	secret := NewSecret(keyText)
	nested := struct {
		hidden   Secret
		Exported Secret
		Pointer  *Secret
	}{secret, secret, &secret}
	client, _ := answered(t, []respond{lost}, WithRetries(0))
	_, err := client.Keys.VerifyKey(t.Context(), VerifyKeyInput{Key: secret})

	var printed []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
		for _, value := range []any{secret, &secret, nested, []Secret{secret}, map[string]Secret{"key": secret}, client, *client, err} {
			printed = append(printed, fmt.Sprintf(verb, value))
		}
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("a call", "key", secret, "input", VerifyKeyInput{Key: secret}, "nested", nested)
	}
	asJSON, jsonErr := json.Marshal(map[string]any{"key": secret, "input": VerifyKeyInput{Key: secret}})
	asXML, xmlErr := xml.Marshal(secret)
	if jsonErr != nil || xmlErr != nil {
		t.Fatal(jsonErr, xmlErr)
	}
	printed = append(printed, log.String(), string(asJSON), string(asXML), secret.String(), secret.GoString())
	for _, text := range printed {
		for _, hidden := range []string{keyText, rootKeyText, fmt.Sprintf("%x", keyText), fmt.Sprintf("%X", keyText)} {
			if strings.Contains(text, hidden) {
				t.Errorf("a secret is in %q", text)
			}
		}
	}
	if printed[0] != "[redacted]" || string(asJSON) != `{"input":{"key":"[redacted]"},"key":"[redacted]"}` {
		t.Errorf("printed as %s and %s", printed[0], asJSON)
	}
	if secret.Reveal() != keyText || !(Secret{}).IsZero() || (Secret{}).Reveal() != "" {
		t.Error("Reveal does not return the text")
	}
}

func TestSecretsAreSentAndReturned(t *testing.T) {
	client, fake := answered(t, []respond{success(`{"keyId":"key_1","apiId":"api_1","start":"prod","enabled":true,
		"createdAt":1,"key":"` + keyText + `","valid":true,"code":"VALID","plaintext":"` + keyText + `","migrated":[],"failed":[]}`)})
	created, err := client.Keys.CreateKey(t.Context(), CreateKeyInput{APIID: "api_1", Meta: map[string]any{"key": NewSecret(keyText)}})
	if err != nil || created.Data.Key.Reveal() != keyText {
		t.Fatal(created, err)
	}
	shown, err := client.Keys.Whoami(t.Context(), WhoamiInput{Key: created.Data.Key})
	if err != nil || shown.Data.Plaintext.Reveal() != keyText {
		t.Fatal(shown, err)
	}
	if _, err := client.Keys.VerifyKey(t.Context(), VerifyKeyInput{Key: created.Data.Key, APIID: Ptr("api_1")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Keys.MigrateKeys(t.Context(), MigrateKeysInput{Pepper: NewSecret("salt"), Keys: []MigrateKeysInputKey{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Keys.MigrateKeys(t.Context(), MigrateKeysInput{}); err != nil {
		t.Fatal(err)
	}
	expected := []string{
		`{"apiId":"api_1","meta":{"key":"[redacted]"}}`,
		`{"key":"` + keyText + `"}`,
		`{"apiId":"api_1","key":"` + keyText + `"}`,
		`{"migrationId":"","apiId":"","keys":[],"pepper":"salt"}`,
		`{"migrationId":"","apiId":""}`,
	}
	for i, body := range expected {
		if fake.sent[i].body != body {
			t.Errorf("sent %s, expected %s", fake.sent[i].body, body)
		}
	}
}

func TestInputsDistinguishOmittedAndNull(t *testing.T) {
	for _, test := range []struct {
		input    UpdateKeyInput
		expected string
	}{
		{UpdateKeyInput{KeyID: "a"}, `{"keyId":"a"}`},
		{UpdateKeyInput{KeyID: "a", Name: Null[string](), Enabled: Ptr(false)}, `{"keyId":"a","name":null,"enabled":false}`},
		{UpdateKeyInput{KeyID: "a", Name: Value(""), Expires: Value(int64(0))}, `{"keyId":"a","name":"","expires":0}`},
		{UpdateKeyInput{KeyID: "a", Permissions: []string{}}, `{"keyId":"a","permissions":[]}`},
		{
			UpdateKeyInput{KeyID: "a", Credits: Value(UpdateKeyInputCredits{Remaining: Null[int64]()})},
			`{"keyId":"a","credits":{"remaining":null}}`,
		},
	} {
		text, err := json.Marshal(test.input)
		if err != nil || string(text) != test.expected {
			t.Errorf("%s, %v; expected %s", text, err, test.expected)
		}
		var read UpdateKeyInput
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(read)
		if !bytes.Equal(text, again) {
			t.Errorf("%s was read as %s", text, again)
		}
	}
	if text, _ := json.Marshal(SetOverrideInput{Namespace: "a", Identifier: "b"}); string(text) != `{"namespace":"a","identifier":"b","limit":0,"duration":0}` {
		t.Errorf("a required number is omitted: %s", text)
	}
}

func TestOptionsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("LATCHKEY_URL", "http://environment.test/base/")
	t.Setenv("LATCHKEY_ROOT_KEY", "lk_root_environment\n")
	fake := &transport{answers: []respond{success(`[]`)}}
	client := newClient(t, WithHTTPClient(&http.Client{Transport: fake}))
	if _, err := client.APIs.ListAPIs(t.Context(), ListAPIsInput{}); err != nil {
		t.Fatal(err)
	}
	if fake.sent[0].url != "http://environment.test/base/v2/apis.listApis" ||
		fake.sent[0].header.Get("Authorization") != "Bearer lk_root_environment" || fake.sent[0].body != "{}" {
		t.Errorf("sent %+v", fake.sent[0])
	}
}

func TestOptionsAreRejectedByName(t *testing.T) {
	t.Setenv("LATCHKEY_URL", "")
	t.Setenv("LATCHKEY_ROOT_KEY", "")
	address := WithURL("http://service.test")
	for name, options := range map[string][]Option{
		"LATCHKEY_URL":        {},
		"WithURL":             {WithURL("keys.example.com")},
		"WithURL ":            {WithURL("ftp://a.test")},
		"WithURL (LATCHKEY":   {WithURL("http://user:password@a.test")},
		"WithRootKey":         {address, WithRootKey(NewSecret(rootKeyText + " \n x"))},
		"WithTimeout":         {address, WithTimeout(0)},
		"WithTimeout must":    {address, WithTimeout(25 * time.Hour)},
		"WithRetries":         {address, WithRetries(11)},
		"WithRetries must be": {address, WithRetries(-1)},
		"WithRetryWaitMax":    {address, WithRetryWaitMax(-1)},
		"WithHTTPClient":      {address, WithHTTPClient(nil)},
	} {
		_, err := New(options...)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), rootKeyText) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client, fake := answered(t, []respond{success(`{}`)})
	for _, key := range []string{"a b", "é", strings.Repeat("a", 256)} {
		_, err := client.APIs.CreateAPI(t.Context(), CreateAPIInput{}, WithIdempotencyKey(key))
		if err == nil || !strings.Contains(err.Error(), "WithIdempotencyKey") {
			t.Errorf("%q: %v", key, err)
		}
	}
	if len(fake.sent) != 0 {
		t.Error("a call with a wrong option was sent")
	}
}

func TestAnswers(t *testing.T) {
	client, _ := answered(t, []respond{success(
		`{"keyId":"a","apiId":"b","start":"prod","enabled":true,"createdAt":1,"new":{"member":[1]},"expires":null,
			"credits":{"remaining":0},"meta":{"plan":"pro","seats":3,"none":null}}`,
		"RateLimit-Limit", "100", "RateLimit-Remaining", "99", "RateLimit-Reset", "30")})
	result, err := client.Keys.GetKey(t.Context(), GetKeyInput{KeyID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	key := result.Data
	if result.RequestID != "req_1" || key.KeyID != "a" || key.Credits.Remaining != 0 || key.Expires != nil || key.Meta["seats"] != 3.0 {
		t.Errorf("the answer is %+v", result)
	}
	if *result.RequestLimit != (RequestLimit{100, 99, 30 * time.Second}) {
		t.Errorf("the limit of requests is %+v", result.RequestLimit)
	}
}

func TestAnswersOfAnotherServiceAreErrors(t *testing.T) {
	for _, body := range []string{"<html>", "null", "[]", `"data"`, "{}", `{"data":[]}`, `{"error":{"type":7}}`, `{"meta":{"requestId":"req_1"},"data":{}}`} {
		client, _ := answered(t, []respond{reply(200, body)})
		_, err := client.APIs.ListAPIs(t.Context(), ListAPIsInput{})
		if failure := failureOf(t, err); failure.Type != ErrInvalidAnswer || failure.Status != 200 {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAnswersWithoutARequiredMemberAreErrors(t *testing.T) {
	verify := func(client *Client) error {
		_, err := client.Keys.VerifyKey(t.Context(), VerifyKeyInput{Key: NewSecret(keyText)})
		return err
	}
	create := func(client *Client) error {
		_, err := client.Keys.CreateKey(t.Context(), CreateKeyInput{APIID: "api_1"})
		return err
	}
	list := func(client *Client) error {
		_, err := client.APIs.ListAPIs(t.Context(), ListAPIsInput{})
		return err
	}
	credits := func(client *Client) error {
		_, err := client.Keys.UpdateCredits(t.Context(), UpdateCreditsInput{KeyID: "a", Operation: "set"})
		return err
	}
	const whole = `{"id":"a","apiId":"a","name":"n"}`
	for _, each := range []struct {
		data  string
		call  func(*Client) error
		fault string
	}{
		{`{"keyId":"a"}`, create, "data.key is missing"},
		{`{"keyId":"a","key":null}`, create, "data.key is null"},
		{`{"keyId":"a","KEY":"b"}`, create, "data.key is missing"},
		{`{"keyId":"a","key":"b"}`, create, ""},
		{`{"keyId":"a","new":"\\\"}{","k\u0065y" : "b\\" }`, create, ""},
		{`{"keyId":"a","new":{"key":"b","more":[{"key":["b"]}]}, "newer":[ ]}`, create, "data.key is missing"},
		{`{}`, verify, "data.valid is missing"},
		{`{"valid":true}`, verify, "data.code is missing"},
		{`{"valid":true,"code":"VALID","identity":{}}`, verify, "data.identity.id is missing"},
		{`{"valid":true,"code":"VALID","identity":null,"ratelimits":null,"meta":{"a":null},"new":[{"a":[1e999,{}]},[],null,-1.5]}`, verify, ""},
		{`{"valid":true,"code":"VALID","ratelimits":[null]}`, verify, "data.ratelimits[0] is null"},
		{`[` + whole + `,{"id":"b","apiId":"b"}]`, list, "data[1].name is missing"},
		{`[` + whole + `]`, list, ""},
		{`{"remaining":null}`, credits, ""},
		{`{}`, credits, "data.remaining is missing"},
	} {
		client, fake := answered(t, []respond{success(each.data)})
		err := each.call(client)
		if each.fault == "" {
			if err != nil {
				t.Errorf("%s: %v", each.data, err)
			}
			continue
		}
		failure := failureOf(t, err)
		if failure.Type != ErrInvalidAnswer || failure.Status != 200 || failure.RequestID != "req_1" || len(fake.sent) != 1 ||
			!strings.Contains(failure.Detail, ": "+each.fault+".") {
			t.Errorf("%s: %+v after %d attempts", each.data, failure, len(fake.sent))
		}
	}
	client, _ := answered(t, []respond{reply(200, `{"meta":{"requestId":"req_1"},"data":[]}`)})
	if failure := failureOf(t, list(client)); !strings.Contains(failure.Detail, ": pagination is missing.") {
		t.Error(failure)
	}
}

// listen starts a server for one test.
func listen(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func TestAnAnswerWithoutAnEndIsNotReadToItsEnd(t *testing.T) {
	written := make(chan int, 1)
	address := listen(t, func(response http.ResponseWriter, _ *http.Request) {
		piece, total := bytes.Repeat([]byte(" "), 1<<20), 0
		for {
			length, err := response.Write(piece)
			total += length
			if err != nil {
				written <- total
				return
			}
		}
	})
	_, err := newClient(t, WithURL(address), WithTimeout(30*time.Second)).APIs.ListAPIs(t.Context(), ListAPIsInput{})
	if failure := failureOf(t, err); failure.Type != ErrInvalidAnswer || failure.Detail != "The answer is longer than 16 MiB." {
		t.Error(err)
	}
	if total := <-written; total > 64<<20 {
		t.Errorf("%d bytes were read", total)
	}
}

func TestAnAnswerThatArrivesSlowlyIsATimeOut(t *testing.T) {
	address := listen(t, func(response http.ResponseWriter, request *http.Request) {
		_, _ = io.WriteString(response, "{")
		_ = http.NewResponseController(response).Flush()
		<-request.Context().Done()
	})
	client := newClient(t, WithURL(address))
	_, err := client.APIs.ListAPIs(t.Context(), ListAPIsInput{}, WithTimeout(100*time.Millisecond), WithRetries(0))
	if !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestARedirectLeadsTheRootKeyNowhere(t *testing.T) {
	reached := 0
	other := listen(t, func(http.ResponseWriter, *http.Request) { reached++ })
	for _, status := range []int{301, 302, 303, 307, 308} {
		address := listen(t, func(response http.ResponseWriter, request *http.Request) {
			http.Redirect(response, request, other, status)
		})
		client := newClient(t, WithURL(address), WithRootKey(NewSecret(rootKeyText)), WithHTTPClient(http.DefaultClient))
		_, err := client.APIs.ListAPIs(t.Context(), ListAPIsInput{})
		failure := failureOf(t, err)
		if failure.Type != ErrInvalidAnswer || failure.Status != status || !strings.Contains(failure.Detail, "redirects") {
			t.Error(err)
		}
	}
	if reached != 0 {
		t.Errorf("%d redirects were followed", reached)
	}
}

func TestARetryHasTheIdempotencyKeyOfTheFirstAttempt(t *testing.T) {
	created := success(`{"keyId":"a","key":"b"}`)
	client, fake := answered(t, []respond{lost, created})
	for _, options := range [][]CallOption{nil, nil, {WithIdempotencyKey("order-104217")}} {
		if _, err := client.Keys.CreateKey(t.Context(), CreateKeyInput{APIID: "a"}, options...); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for _, sent := range fake.sent {
		keys = append(keys, sent.idempotencyKey())
	}
	if len(keys[0]) < 20 || keys[0] != keys[1] || keys[1] == keys[2] || keys[3] != "order-104217" {
		t.Errorf("the keys are %q", keys)
	}
}

func TestARetryIsMadeOnlyWhereItIsSafe(t *testing.T) {
	list := func(client *Client, options ...CallOption) error {
		_, err := client.APIs.ListAPIs(t.Context(), ListAPIsInput{}, options...)
		return err
	}
	verify := func(client *Client, options ...CallOption) error {
		_, err := client.Keys.VerifyKey(t.Context(), VerifyKeyInput{Key: NewSecret("a")}, options...)
		return err
	}
	create := func(client *Client, options ...CallOption) error {
		_, err := client.Keys.CreateKey(t.Context(), CreateKeyInput{APIID: "a"}, options...)
		return err
	}
	remove := func(client *Client, options ...CallOption) error {
		_, err := client.Keys.DeleteKey(t.Context(), DeleteKeyInput{KeyID: "a"}, options...)
		return err
	}
	settle := func(client *Client, options ...CallOption) error {
		_, err := client.Holds.SettleHold(t.Context(), SettleHoldInput{HoldID: "a"}, options...)
		return err
	}
	release := func(client *Client, options ...CallOption) error {
		_, err := client.Holds.ReleaseHold(t.Context(), ReleaseHoldInput{HoldID: "a"}, options...)
		return err
	}
	extend := func(client *Client, options ...CallOption) error {
		_, err := client.Holds.ExtendHold(t.Context(), ExtendHoldInput{HoldID: "a"}, options...)
		return err
	}
	unavailable := failed(503, ErrApplicationServiceUnavailable)
	for i, test := range []struct {
		attempts int
		call     func(*Client, ...CallOption) error
		answer   respond
		options  []CallOption
	}{
		{3, list, lost, nil},
		{3, verify, lost, []CallOption{WithRetryCharges(true)}},
		{3, verify, lost, []CallOption{WithIdempotencyKey("a")}},
		{1, verify, lost, nil},
		{3, create, unavailable, nil},
		{3, list, reply(502, "<html>"), nil},
		{1, remove, lost, nil},
		{1, remove, unavailable, nil},
		{1, remove, lost, []CallOption{WithIdempotencyKey("a")}},
		// A repetition has the answer of the first.
		{3, settle, lost, nil},
		{3, release, unavailable, nil},
		{3, extend, lost, nil},
		// It had no effect yet.
		{3, remove, failed(429, ErrUserTooManyRequestsWorkspaceRateLimited), nil},
		{1, verify, failed(400, ErrApplicationInvalidInput), nil},
		{1, list, failed(404, ErrDataKeyNotFound), nil},
		{1, create, failed(409, ErrApplicationIdempotencyInProgress), nil},
		{1, list, failed(500, ErrApplicationUnexpectedError), nil},
		{1, verify, lost, []CallOption{WithRetries(0), WithRetryCharges(true)}},
		{6, list, lost, []CallOption{WithRetries(5)}},
	} {
		client, fake := answered(t, []respond{test.answer})
		failureOf(t, test.call(client, test.options...))
		if len(fake.sent) != test.attempts {
			t.Errorf("case %d: %d attempts, expected %d", i, len(fake.sent), test.attempts)
		}
	}
}

func TestARetryWaitsWhileTheFirstAttemptIsExecuted(t *testing.T) {
	client, fake := answered(t, []respond{lost, failed(409, ErrApplicationIdempotencyInProgress), success(`{"keyId":"a","key":"b"}`)})
	if _, err := client.Keys.CreateKey(t.Context(), CreateKeyInput{APIID: "a"}); err != nil || len(fake.sent) != 3 {
		t.Error(err, len(fake.sent))
	}
}

func TestARetryWaitsForRetryAfterUpToAMaximum(t *testing.T) {
	busy := failed(503, ErrApplicationServiceUnavailable, "Retry-After", "4")
	client, _ := answered(t, []respond{busy, success(`[]`)})
	var waits []time.Duration
	client.APIs.connection.wait = func(_ context.Context, length time.Duration) bool {
		waits = append(waits, length)
		return true
	}
	if _, err := client.APIs.ListAPIs(t.Context(), ListAPIsInput{}); err != nil {
		t.Fatal(err)
	}
	if len(waits) != 1 || waits[0] < 4050*time.Millisecond || waits[0] > 4100*time.Millisecond {
		t.Errorf("waited for %v", waits)
	}

	impatient, fake := answered(t, []respond{busy}, WithRetryWaitMax(3999*time.Millisecond))
	_, err := impatient.APIs.ListAPIs(t.Context(), ListAPIsInput{})
	failure := failureOf(t, err)
	if failure.RetryAfter != 4*time.Second || failure.RequestID != "req_2" || failure.Detail != "Not so." || len(fake.sent) != 1 {
		t.Errorf("%+v after %d attempts", failure, len(fake.sent))
	}
}

func TestAContextEndsACall(t *testing.T) {
	reason := errors.New("the user left")
	during, end := context.WithCancelCause(t.Context())
	client, fake := answered(t, []respond{func(request *http.Request) (*http.Response, error) {
		end(reason)
		<-request.Context().Done()
		return nil, request.Context().Err()
	}})
	for range 2 {
		_, err := client.APIs.ListAPIs(during, ListAPIsInput{})
		if !errors.Is(err, ErrAborted) || !errors.Is(err, reason) {
			t.Error(err)
		}
	}
	if len(fake.sent) != 1 {
		t.Errorf("%d attempts", len(fake.sent))
	}

	between, endBetween := context.WithCancel(t.Context())
	client, fake = answered(t, []respond{lost}, WithOnResponse(func(context.Context, AttemptEnd) { endBetween() }))
	client.APIs.connection.wait = wait
	_, err := client.APIs.ListAPIs(between, ListAPIsInput{})
	if !errors.Is(err, context.Canceled) || len(fake.sent) != 1 {
		t.Error(err, len(fake.sent))
	}
}

func TestHooksSeeEveryAttemptWithoutTheRootKey(t *testing.T) {
	type span struct{}
	var ends []AttemptEnd
	client, fake := answered(t, []respond{lost, success(`{"valid":true,"code":"VALID"}`)}, WithRetryCharges(true),
		WithOnRequest(func(ctx context.Context, attempt Attempt) {
			if attempt.Header.Get("Authorization") != "" {
				t.Error("the hook sees the root key")
			}
			attempt.Header.Set("Traceparent", fmt.Sprint(ctx.Value(span{}), attempt.Operation, attempt.Attempt))
			attempt.Header.Set("Authorization", "Bearer other")
			attempt.Header.Set("Idempotency-Key", "other")
		}),
		WithOnResponse(func(_ context.Context, end AttemptEnd) { ends = append(ends, end) }))
	ctx := context.WithValue(t.Context(), span{}, "span ")
	if _, err := client.Keys.VerifyKey(ctx, VerifyKeyInput{Key: NewSecret(keyText)}); err != nil {
		t.Fatal(err)
	}
	for i, trace := range []string{"span keys.verifyKey1", "span keys.verifyKey2"} {
		header := fake.sent[i].header
		if header.Get("Traceparent") != trace || header.Get("Authorization") != "Bearer "+rootKeyText || header.Get("Idempotency-Key") != "" {
			t.Errorf("sent %v", header)
		}
	}
	if len(ends) != 2 || ends[0].Error.Type != ErrNetwork || ends[0].Status != 0 || ends[0].RetryIn < 50*time.Millisecond ||
		ends[0].RetryIn > 100*time.Millisecond || ends[1].Error != nil || ends[1].Status != 200 || ends[1].RequestID != "req_1" || ends[1].RetryIn != 0 {
		t.Errorf("the attempts ended with %+v", ends)
	}
}

func TestAListDoesNotRepeatOnePageForEver(t *testing.T) {
	page := `{"meta":{"requestId":"req_1"},"data":[{"id":"a","apiId":"a","name":"n"}],"pagination":{"hasMore":true,"cursor":"b"}}`
	client, fake := answered(t, []respond{reply(200, page)})
	count := 0
	var failure error
	for _, err := range client.APIs.ListAPIsAll(t.Context(), ListAPIsInput{}) {
		if failure = err; count > 10 {
			t.Fatal("the page is repeated")
		} else if err == nil {
			count++
		}
	}
	if !errors.Is(failure, ErrInvalidAnswer) || count != 2 || len(fake.sent) != 2 {
		t.Error(failure, count, len(fake.sent))
	}
}

func TestAListCanBeReadTwiceAndLeftEarly(t *testing.T) {
	page := func(id, pagination string) respond {
		return reply(200, `{"meta":{"requestId":"req_1"},"data":[{"id":"`+id+`","apiId":"`+id+`","name":"n"}],"pagination":`+pagination+`}`)
	}
	first, last := page("a", `{"hasMore":true,"cursor":"next"}`), page("b", `{"hasMore":false}`)
	client, fake := answered(t, []respond{first, last, first, last, first})
	all := client.APIs.ListAPIsAll(t.Context(), ListAPIsInput{Limit: Ptr(int64(1))})
	for range 2 {
		var ids []string
		for api, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, api.ID)
		}
		if strings.Join(ids, "") != "ab" {
			t.Errorf("the entries are %v", ids)
		}
	}
	for range all {
		break
	}
	var bodies []string
	for _, sent := range fake.sent {
		bodies = append(bodies, sent.body)
	}
	start, next := `{"limit":1}`, `{"limit":1,"cursor":"next"}`
	if expected := []string{start, next, start, next, start}; fmt.Sprint(bodies) != fmt.Sprint(expected) {
		t.Errorf("sent %v", bodies)
	}
}

func newClient(t *testing.T, options ...Option) *Client {
	t.Helper()
	client, err := New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
