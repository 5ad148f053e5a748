package latchkeyhttp

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

func TestLimitHeader(t *testing.T) {
	text, err := os.ReadFile("../../../sdk/test/limit-headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var shared struct {
		Now   int64
		Cases []struct {
			Name   string
			Limits []struct {
				Name       string
				Limit      int64
				Duration   int64
				Unit       string
				Exceeded   bool
				Remaining  int64
				Reset      *int64
				RetryAfter *int64
				Partition  string
			}
			Headers map[string]string
		}
	}
	if err := json.Unmarshal(text, &shared); err != nil {
		t.Fatal(err)
	}
	if len(shared.Cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range shared.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var limits []limitState
			for _, l := range c.Limits {
				limits = append(limits, limitState{
					l.Name, l.Limit, l.Duration, l.Unit, l.Exceeded, l.Remaining, l.Reset, l.RetryAfter, l.Partition,
				})
			}
			header := limitHeader(limits, time.UnixMilli(shared.Now))
			for _, name := range []string{"RateLimit-Policy", "RateLimit"} {
				if got := header.Get(name); got != c.Headers[name] {
					t.Errorf("%s: %s, not %s", name, got, c.Headers[name])
				}
			}
		})
	}
}

func TestLimitsOfVerification(t *testing.T) {
	limit := latchkey.VerifyKeyOutputRatelimit{ID: "rl_1", Name: "requests", Limit: 9, Duration: 1000, Remaining: 8, Reset: 1}
	shared := limit
	shared.From = "identity"
	slots := latchkey.VerifyKeyOutputConcurrency{Name: "streams", Limit: 2, InUse: 3, From: "key", Exceeded: true}
	sharedSlots := latchkey.VerifyKeyOutputConcurrency{Name: "streams", Limit: 2, InUse: 1, From: "identity"}
	states := limitsOf(latchkey.VerifyKeyOutput{
		KeyID:       "key_1",
		Identity:    &latchkey.Identity{ID: "id_1"},
		Ratelimits:  []latchkey.VerifyKeyOutputRatelimit{limit, shared},
		Concurrency: []latchkey.VerifyKeyOutputConcurrency{slots, sharedSlots},
	})
	var found []string
	for _, s := range states {
		found = append(found, fmt.Sprint(s.name, " ", s.partition, " ", s.remaining, " ", s.unit))
	}
	want := []string{
		"requests key_1 8 ", "requests id_1 8 ", "streams key_1 0 concurrent-requests", "streams id_1 1 concurrent-requests",
	}
	if !slices.Equal(found, want) {
		t.Errorf("%q, not %q", found, want)
	}
}
