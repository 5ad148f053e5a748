package latchkey

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

const verified = `{"valid":true,"code":"VALID","keyId":"key_1","apiId":"api_1"}`

// stalled returns the address of a service that does not answer before the function was called.
func stalled(t *testing.T) (url string, answer func()) {
	t.Helper()
	released := make(chan struct{})
	answer = sync.OnceFunc(func() { close(released) })
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		// The server notices that a client has left when the body was read.
		_, _ = io.Copy(io.Discard, request.Body)
		select {
		case <-released:
		case <-request.Context().Done():
		}
		_, _ = io.WriteString(response, `{"meta":{"requestId":"req_1"},"data":`+verified+`}`)
	}))
	t.Cleanup(func() {
		answer()
		server.Close()
	})
	return server.URL, answer
}

func TestABurstOfTimeoutsLeavesTheClientUsable(t *testing.T) {
	url, answer := stalled(t)
	client := newClient(t, WithURL(url), WithTimeout(300*time.Millisecond), WithCircuitBreaker(false))
	input := VerifyKeyInput{Key: NewSecret(keyText)}
	var calls sync.WaitGroup
	failures := make([]error, 400)
	for i := range failures {
		calls.Add(1)
		go func() {
			defer calls.Done()
			_, failures[i] = client.Keys.VerifyKey(t.Context(), input)
		}()
	}
	calls.Wait()
	for _, err := range failures {
		if !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
	}
	answer()
	result, err := client.Keys.VerifyKey(t.Context(), input, WithTimeout(30*time.Second))
	if err != nil || !result.Data.Valid {
		t.Fatal(result, err)
	}
}

// raw returns the address of a service that answers each request with these bytes, and keeps the connection open.
func raw(t *testing.T, answer string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := http.NewResponseController(response).Hijack()
		if err != nil {
			panic(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		_, _ = buffered.WriteString(answer)
		_ = buffered.Flush()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAnAnswerThatChangesTheProtocolEndsTheCall(t *testing.T) {
	url := raw(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	client := newClient(t, WithURL(url), WithTimeout(300*time.Millisecond))
	ended := make(chan error, 1)
	go func() {
		_, err := client.Keys.VerifyKey(t.Context(), VerifyKeyInput{Key: NewSecret(keyText)})
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrInvalidAnswer) {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the call has not ended")
	}
}

// clock is a time that stands still.
type clock struct{ now time.Time }

func (c *clock) forward(d time.Duration) { c.now = c.now.Add(d) }

func openBreaker(t *testing.T) (*breaker, *clock) {
	t.Helper()
	c := &clock{time.Unix(100, 0)}
	b := &breaker{now: func() time.Time { return c.now }}
	for range timeoutsMax {
		p, isAdmitted := b.admit()
		if !isAdmitted {
			t.Fatal("the breaker has opened too early")
		}
		b.end(p, outcomeTimeout)
	}
	return b, c
}

func checkAdmitted(t *testing.T, b *breaker, expected bool) permit {
	t.Helper()
	p, isAdmitted := b.admit()
	if isAdmitted != expected {
		t.Fatalf("admitted: %t", isAdmitted)
	}
	return p
}

func TestABreakerOpensAfterTimeoutsInARow(t *testing.T) {
	b := &breaker{now: time.Now}
	for _, ended := range []outcome{outcomeTimeout, outcomeTimeout, outcomeTimeout, outcomeTimeout, outcomeUnknown, outcomeAnswered, outcomeTimeout, outcomeTimeout, outcomeTimeout, outcomeTimeout} {
		b.end(0, ended)
	}
	checkAdmitted(t, b, true)
	b.end(0, outcomeTimeout)
	checkAdmitted(t, b, false)
	// A late answer.
	b.end(0, outcomeAnswered)
	checkAdmitted(t, b, true)
}

func TestABreakerSendsOneProbeAtATime(t *testing.T) {
	b, c := openBreaker(t)
	for _, ended := range []outcome{outcomeTimeout, outcomeUnknown} {
		c.forward(probeWait - 1)
		// What was sent earlier delays no probe.
		b.end(0, outcomeTimeout)
		checkAdmitted(t, b, false)
		c.forward(1)
		probe := checkAdmitted(t, b, true)
		c.forward(time.Minute)
		checkAdmitted(t, b, false)
		b.end(probe, ended)
		checkAdmitted(t, b, false)
	}
	c.forward(probeWait)
	b.end(checkAdmitted(t, b, true), outcomeAnswered)
	checkAdmitted(t, b, true)
	checkAdmitted(t, b, true)
}

// hang is an attempt that gets no answer.
func hang(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// hanging returns a client whose time stands still. Its first attempts time out at once.
func hanging(t *testing.T, timeouts int, then []respond, options ...Option) (*Client, *transport, *clock) {
	t.Helper()
	client, fake := answered(t, append(slices.Repeat([]respond{hang}, timeouts), then...),
		append(options, WithTimeout(time.Millisecond))...)
	c := &clock{time.Unix(100, 0)}
	client.Keys.connection.breaker.now = func() time.Time { return c.now }
	return client, fake, c
}

func checkVerifications(t *testing.T, client *Client, expected ...ErrorType) {
	t.Helper()
	for i, expected := range expected {
		_, err := client.Keys.VerifyKey(t.Context(), VerifyKeyInput{Key: NewSecret(keyText)})
		if actual := failureOf(t, err).Type; actual != expected {
			t.Fatalf("call %d: %s instead of %s", i+1, actual, expected)
		}
	}
}

func TestCallsFailAtOnceUntilAProbeIsAnswered(t *testing.T) {
	client, fake, c := hanging(t, 6, []respond{reply(500, "")})
	checkVerifications(t, client, ErrTimeout, ErrTimeout, ErrTimeout, ErrTimeout, ErrTimeout, ErrCircuitOpen, ErrCircuitOpen)
	c.forward(probeWait)
	checkVerifications(t, client, ErrTimeout, ErrCircuitOpen)
	c.forward(probeWait)
	// Any answer shows that the service is there.
	checkVerifications(t, client, ErrInvalidAnswer, ErrInvalidAnswer)
	if len(fake.sent) != 8 {
		t.Errorf("%d requests", len(fake.sent))
	}
}

func TestACallThatWasSentFailsWithItsTimeout(t *testing.T) {
	client, fake, _ := hanging(t, 1, nil)
	// Three attempts, then two: the second one opens the circuit.
	for _, expected := range []ErrorType{ErrTimeout, ErrTimeout, ErrCircuitOpen} {
		if _, err := client.Keys.CreateKey(t.Context(), CreateKeyInput{APIID: "a"}); failureOf(t, err).Type != expected {
			t.Fatal(err)
		}
	}
	if len(fake.sent) != 5 {
		t.Errorf("%d requests", len(fake.sent))
	}
}

func TestABreakerLetsCallsPassToAServiceThatIsAwayOrWhenItIsOff(t *testing.T) {
	client, _, _ := hanging(t, 0, []respond{lost})
	checkVerifications(t, client, slices.Repeat([]ErrorType{ErrNetwork}, 8)...)
	client, _, _ = hanging(t, 1, nil, WithCircuitBreaker(false))
	checkVerifications(t, client, slices.Repeat([]ErrorType{ErrTimeout}, 8)...)
}

func TestAProbeThatPanicsInAHookIsFollowedByAnother(t *testing.T) {
	panics := false
	hook := WithOnRequest(func(context.Context, Attempt) {
		if panics {
			panic("a hook")
		}
	})
	client, _, c := hanging(t, 5, []respond{success(verified)}, hook)
	checkVerifications(t, client, slices.Repeat([]ErrorType{ErrTimeout}, 5)...)
	c.forward(probeWait)
	func() {
		defer func() { panics = recover() == nil }()
		panics = true
		checkVerifications(t, client, "")
	}()
	c.forward(probeWait)
	if _, err := client.Keys.VerifyKey(t.Context(), VerifyKeyInput{Key: NewSecret(keyText)}); err != nil {
		t.Fatal(err)
	}
}
