package latchkey_test

import (
	"context"
	"errors"
	"testing"

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

func remaining(t *testing.T, client *latchkey.Client, keyID string) int64 {
	t.Helper()
	key, err := client.Keys.GetKey(t.Context(), latchkey.GetKeyInput{KeyID: keyID})
	if err != nil {
		t.Fatal(err)
	}
	return key.Data.Credits.Remaining
}
