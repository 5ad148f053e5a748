package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/internal/scenarios"
)

// step is one step of the scenarios that the clients in all languages run: see sdk/test/scenarios.test.ts.
type step struct {
	Call         string            `json:"call"`
	Input        any               `json:"input"`
	RootKey      *string           `json:"rootKey"`
	Network      string            `json:"network"`
	Timeout      int               `json:"timeout"`
	RetryCharges bool              `json:"retryCharges"`
	Repeat       int               `json:"repeat"`
	All          bool              `json:"all"`
	Save         map[string]string `json:"save"`
	Data         any               `json:"data"`
	Count        *int              `json:"count"`
	Attempts     *int              `json:"attempts"`
	Errors       []string          `json:"errors"`
	Breaker      *bool             `json:"circuitBreaker"`
	Error        *stepError        `json:"error"`
}

type stepError struct {
	Type     string `json:"type"`
	Status   int    `json:"status"`
	Location string `json:"location"`
	Message  string `json:"message"`
}

func TestScenarios(t *testing.T) {
	address, rootKey := scenarios.Service(t)
	network := scenarios.NewNetwork(t, address)
	admin := newClient(t, latchkey.WithURL(address), latchkey.WithRootKey(rootKey))
	api, err := admin.APIs.CreateAPI(t.Context(), latchkey.CreateAPIInput{Name: "scenarios"})
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range scenarios.Read[step](t, "../../sdk/test/scenarios.json") {
		t.Run(scenario.Name, func(t *testing.T) {
			saved := map[string]any{"apiId": api.Data.APIID}
			for i, step := range scenario.Steps {
				network.Disturb(step.Network)
				runStep(t, fmt.Sprintf("step %d, %s", i+1, step.Call), step, saved, network.URL, rootKey)
			}
			network.Disturb("")
		})
	}
}

func runStep(t *testing.T, where string, step step, saved map[string]any, address string, rootKey latchkey.Secret) {
	t.Helper()
	if step.RootKey != nil {
		rootKey = latchkey.NewSecret(*step.RootKey)
	}
	timeout := 10 * time.Second
	if step.Timeout > 0 {
		timeout = time.Duration(step.Timeout) * time.Millisecond
	}
	attempts := 0
	client := newClient(t, latchkey.WithURL(address), latchkey.WithRootKey(rootKey), latchkey.WithTimeout(timeout),
		latchkey.WithRetryCharges(step.RetryCharges),
		latchkey.WithCircuitBreaker(step.Breaker == nil || *step.Breaker), latchkey.WithOnRequest(func(context.Context, latchkey.Attempt) { attempts++ }))

	for i := range max(step.Repeat, 1) {
		if step.Errors != nil {
			step.Error = &stepError{Type: step.Errors[i]}
		}
		result, err := scenarios.Call(t, client, step.Call, scenarios.Substitute(t, step.Input, saved), step.All)
		if step.Error != nil {
			checkError(t, where, err, step)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if expected := scenarios.Substitute(t, step.Data, saved); !scenarios.Contains(result, expected) {
			t.Fatalf("%s answered %v, expected %v", where, result, expected)
		}
		if step.Count != nil {
			checkCount(t, where, result, *step.Count)
		}
		for member, name := range step.Save {
			value, ok := result.(map[string]any)[member]
			if !ok {
				t.Fatalf("%s: the answer has no %s", where, member)
			}
			saved[name] = value
		}
	}
	if step.Attempts != nil && attempts != *step.Attempts {
		t.Fatalf("%s: %d attempts, expected %d", where, attempts, *step.Attempts)
	}
}

func checkError(t *testing.T, where string, err error, step step) {
	t.Helper()
	var failure *latchkey.Error
	if !errors.As(err, &failure) || !errors.Is(err, latchkey.ErrorType(step.Error.Type)) || failure.Status != step.Error.Status {
		t.Fatalf("%s failed with %v, expected %+v", where, err, *step.Error)
	}
	if location := step.Error.Location; location != "" {
		if len(failure.Errors) != 1 || failure.Errors[0].Location != location {
			t.Fatalf("%s: the errors of the input are %+v, expected one at %s", where, failure.Errors, location)
		}
	}
	if message := step.Error.Message; message != "" && err.Error() != "latchkey: "+message {
		t.Fatalf("%s: the message is %q, expected %q", where, err, message)
	}
	if failure.Status != 0 && !strings.HasPrefix(failure.RequestID, "req_") {
		t.Fatalf("%s: the request id is %q", where, failure.RequestID)
	}
}

func checkCount(t *testing.T, where string, result any, count int) {
	t.Helper()
	ids := map[any]bool{}
	list := result.([]any)
	for _, entry := range list {
		id, ok := entry.(map[string]any)["keyId"]
		if !ok {
			id = entry.(map[string]any)["overrideId"]
		}
		ids[id] = true
	}
	if len(list) != count || len(ids) != count {
		t.Fatalf("%s: %d entries, %d of them different, expected %d", where, len(list), len(ids), count)
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
