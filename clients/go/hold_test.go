package latchkey_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/internal/scenarios"
)

func TestWithHold(t *testing.T) {
	address, rootKey := scenarios.Service(t)
	client, err := latchkey.New(latchkey.WithURL(address), latchkey.WithRootKey(rootKey))
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.APIs.CreateAPI(t.Context(), latchkey.CreateAPIInput{Name: "holds"})
	if err != nil {
		t.Fatal(err)
	}
	created, err := client.Keys.CreateKey(t.Context(), latchkey.CreateKeyInput{
		APIID: api.Data.APIID, Credits: &latchkey.CreateKeyInputCredits{Remaining: latchkey.Value(int64(100))},
	})
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("of the work")
	for _, each := range []struct {
		report, charged int64
		err             error
	}{{7, 7, nil}, {-1, 40, nil}, {5, 5, failure}, {-1, 0, failure}} {
		left := remaining(t, client, created.Data.KeyID)
		input := latchkey.VerifyKeyInput{Key: created.Data.Key, Credits: &latchkey.VerifyKeyInputCredits{Cost: 40}}
		verified, err := client.WithHold(t.Context(), input, latchkey.HoldOptions{},
			func(_ context.Context, hold *latchkey.OpenHold) error {
				if each.report >= 0 {
					hold.Report(latchkey.Settlement{Credits: each.report})
				}
				return each.err
			})
		if !errors.Is(err, each.err) || !verified.Valid {
			t.Errorf("the work ended with %v", err)
		}
		if charged := left - remaining(t, client, created.Data.KeyID); charged != each.charged {
			t.Errorf("%d credits were charged, not %d", charged, each.charged)
		}
	}
	input := latchkey.VerifyKeyInput{Key: created.Data.Key, Credits: &latchkey.VerifyKeyInputCredits{Cost: 101}}
	verified, err := client.WithHold(t.Context(), input, latchkey.HoldOptions{},
		func(context.Context, *latchkey.OpenHold) error { return failure })
	if err != nil || verified.Code != latchkey.VerifyKeyCodeUsageExceeded {
		t.Errorf("a key without credits: %v", err)
	}
	if _, err := client.WithHold(t.Context(), input, latchkey.HoldOptions{TTL: 1}, nil); err == nil {
		t.Error("a time that cannot be used was accepted")
	}
}

// slowService answers verifications when they may be answered, and tells which calls ended holds.
type slowService struct{ verifying, canVerify, ends chan string }

func (s slowService) RoundTrip(request *http.Request) (*http.Response, error) {
	operation := path.Base(request.URL.Path)
	data := `{"holdId":"hold_1","state":"settled","charged":0,"uncovered":0,"budgets":[]}`
	if operation == "keys.verifyKey" {
		data = `{"valid":true,"code":"VALID","keyId":"key_1","apiId":"api_1","hold":{"holdId":"hold_1","expiresAt":1}}`
		s.verifying <- operation
		select {
		case <-s.canVerify:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	} else {
		s.ends <- operation
	}
	body := io.NopCloser(strings.NewReader(`{"meta":{"requestId":"req_1"},"data":` + data + `}`))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
}

func newSlowService(t *testing.T, options ...latchkey.Option) (*latchkey.Client, slowService) {
	t.Helper()
	service := slowService{make(chan string, 1), make(chan string), make(chan string, 1)}
	options = append(options, latchkey.WithURL("http://service.test"), latchkey.WithTimeout(time.Minute),
		latchkey.WithHTTPClient(&http.Client{Transport: service}))
	client, err := latchkey.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return client, service
}

func TestAHoldOfAVerificationThatWasCancelledIsReleased(t *testing.T) {
	client, service := newSlowService(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-service.verifying
		cancel()
	}()
	hold, _, err := client.Hold(ctx, latchkey.VerifyKeyInput{Key: latchkey.NewSecret("a")}, latchkey.HoldOptions{})
	if hold != nil || !errors.Is(err, latchkey.ErrAborted) || !errors.Is(err, context.Canceled) {
		t.Fatalf("the verification ended with %v", err)
	}
	if err := client.WaitForHolds(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("what may be made is not waited for: %v", err)
	}
	close(service.canVerify)
	if err := client.WaitForHolds(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case operation := <-service.ends:
		if operation != "holds.releaseHold" {
			t.Errorf("%s was called", operation)
		}
	default:
		t.Error("the hold is open")
	}
	if _, _, err := client.Hold(ctx, latchkey.VerifyKeyInput{}, latchkey.HoldOptions{}); !errors.Is(err, latchkey.ErrAborted) {
		t.Errorf("a call after the end of its context ended with %v", err)
	}
}

func TestWaitForHoldsWaitsUntilAllHaveEnded(t *testing.T) {
	client, service := newSlowService(t)
	close(service.canVerify)
	hold, _, err := client.Hold(t.Context(), latchkey.VerifyKeyInput{}, latchkey.HoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := client.WaitForHolds(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("the hold is open, and the wait ended with %v", err)
		}
	}
	go hold.End(t.Context(), &latchkey.Settlement{Credits: 1})
	if err := client.WaitForHolds(t.Context()); err != nil {
		t.Error(err)
	}
	if operation := <-service.ends; operation != "holds.settleHold" {
		t.Errorf("%s was called", operation)
	}
}

func TestAHookThatPanicsDuringAVerificationWithAHoldPanicsInTheCaller(t *testing.T) {
	client, _ := newSlowService(t, latchkey.WithOnRequest(func(context.Context, latchkey.Attempt) { panic("of the hook") }))
	defer func() {
		if thrown := recover(); thrown != "of the hook" {
			t.Errorf("%v", thrown)
		}
		if err := client.WaitForHolds(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, _, err := client.Hold(t.Context(), latchkey.VerifyKeyInput{}, latchkey.HoldOptions{})
	t.Errorf("it returned %v", err)
}

func remaining(t *testing.T, client *latchkey.Client, keyID string) int64 {
	t.Helper()
	key, err := client.Keys.GetKey(t.Context(), latchkey.GetKeyInput{KeyID: keyID})
	if err != nil {
		t.Fatal(err)
	}
	return key.Data.Credits.Remaining
}
