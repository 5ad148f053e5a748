package latchkey

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
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
	Error        *struct {
		Type     string `json:"type"`
		Status   int    `json:"status"`
		Location string `json:"location"`
	} `json:"error"`
}

// service returns the address and the root key of the service that `npm run test:go` starts.
func service(t testing.TB) (address string, rootKey Secret) {
	t.Helper()
	address, key := os.Getenv("LATCHKEY_TEST_URL"), os.Getenv("LATCHKEY_TEST_ROOT_KEY")
	if address == "" || key == "" {
		t.Fatal("LATCHKEY_TEST_URL and LATCHKEY_TEST_ROOT_KEY name no service: run the tests with `npm run test:go`")
	}
	return address, NewSecret(key)
}

func TestScenarios(t *testing.T) {
	address, rootKey := service(t)
	network := newDisturbedNetwork(t, address)
	admin := newClient(t, WithURL(address), WithRootKey(rootKey))
	api, err := admin.APIs.CreateAPI(t.Context(), CreateAPIInput{Name: "scenarios"})
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range readScenarios[step](t, "../../sdk/test/scenarios.json") {
		t.Run(scenario.Name, func(t *testing.T) {
			saved := map[string]any{"apiId": api.Data.APIID}
			for i, step := range scenario.Steps {
				network.disturb(step.Network)
				runStep(t, fmt.Sprintf("step %d, %s", i+1, step.Call), step, saved, network.url, rootKey)
			}
			network.disturb("")
		})
	}
}

type scenario[Step any] struct {
	Name  string `json:"name"`
	Steps []Step `json:"steps"`
}

// readScenarios reads a list of scenarios. A member that a step does not have is an error.
func readScenarios[Step any](t *testing.T, path string) []scenario[Step] {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []scenario[Step]
	decode(t, path, text, &scenarios)
	if len(scenarios) == 0 {
		t.Fatalf("%s has no scenarios", path)
	}
	return scenarios
}

func runStep(t *testing.T, where string, step step, saved map[string]any, address string, rootKey Secret) {
	t.Helper()
	if step.RootKey != nil {
		rootKey = NewSecret(*step.RootKey)
	}
	timeout := 10 * time.Second
	if step.Timeout > 0 {
		timeout = time.Duration(step.Timeout) * time.Millisecond
	}
	attempts := 0
	client := newClient(t, WithURL(address), WithRootKey(rootKey), WithTimeout(timeout),
		WithRetryCharges(step.RetryCharges), WithOnRequest(func(context.Context, Attempt) { attempts++ }))

	for range max(step.Repeat, 1) {
		result, err := callByName(t, client, step.Call, substitute(t, step.Input, saved), step.All)
		if step.Error != nil {
			checkError(t, where, err, step)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if expected := substitute(t, step.Data, saved); !contains(result, expected) {
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
	var failure *Error
	if !errors.As(err, &failure) || !errors.Is(err, ErrorType(step.Error.Type)) || failure.Status != step.Error.Status {
		t.Fatalf("%s failed with %v, expected %+v", where, err, *step.Error)
	}
	if location := step.Error.Location; location != "" {
		if len(failure.Errors) != 1 || failure.Errors[0].Location != location {
			t.Fatalf("%s: the errors of the input are %+v, expected one at %s", where, failure.Errors, location)
		}
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

func newClient(t *testing.T, options ...Option) *Client {
	t.Helper()
	client, err := New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// callByName calls an operation by its name in the API. It returns the data as JSON with its secrets revealed; with
// all, the entries of all pages.
func callByName(t *testing.T, client *Client, operation string, input any, all bool) (any, error) {
	t.Helper()
	namespace, verb, _ := strings.Cut(operation, ".")
	if all {
		verb += "All"
	}
	group := reflect.ValueOf(client.Operations).FieldByNameFunc(func(name string) bool {
		return strings.EqualFold(name, namespace)
	})
	if !group.IsValid() {
		t.Fatalf("the client has no operations %s", namespace)
	}
	for i := range group.NumMethod() {
		if !strings.EqualFold(group.Type().Method(i).Name, verb) {
			continue
		}
		method := group.Method(i)
		typed := reflect.New(method.Type().In(1))
		text, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		decode(t, "the input of "+operation, text, typed.Interface())
		results := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), typed.Elem()})
		if all {
			return entriesOf(results[0])
		}
		if err, _ := results[1].Interface().(error); err != nil {
			return nil, err
		}
		result := results[0].Elem()
		if id := result.FieldByName("RequestID").String(); !strings.HasPrefix(id, "req_") {
			t.Fatalf("the request id of %s is %q", operation, id)
		}
		return revealed(result.FieldByName("Data")), nil
	}
	t.Fatalf("the client has no operation %s", operation)
	return nil, nil
}

// entriesOf returns the values of an iterator, up to the first error.
func entriesOf(sequence reflect.Value) (any, error) {
	list := []any{}
	var failure error
	for entry, err := range sequence.Seq2() {
		if failure, _ = err.Interface().(error); failure != nil {
			break
		}
		list = append(list, revealed(entry))
	}
	return list, failure
}

// revealed returns a value as its JSON, but with the texts of secrets.
func revealed(value reflect.Value) any {
	switch value.Kind() {
	case reflect.Pointer:
		return revealed(value.Elem())
	case reflect.Slice:
		list := []any{}
		for i := range value.Len() {
			list = append(list, revealed(value.Index(i)))
		}
		return list
	case reflect.Struct:
		if secret, ok := value.Interface().(Secret); ok {
			return secret.Reveal()
		}
		members := map[string]any{}
		for i := range value.NumField() {
			name, options, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			if options == "omitzero" && value.Field(i).IsZero() {
				continue
			}
			members[name] = revealed(value.Field(i))
		}
		return members
	case reflect.Int64:
		return float64(value.Int())
	case reflect.String:
		return value.String()
	default:
		return value.Interface()
	}
}

func decode(t *testing.T, what string, text []byte, target any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// contains returns whether every member of the expected value is in the actual one.
func contains(actual, expected any) bool {
	members, ok := expected.(map[string]any)
	if !ok {
		return expected == nil || reflect.DeepEqual(actual, expected)
	}
	object, ok := actual.(map[string]any)
	for name, value := range members {
		member, isThere := object[name]
		if !ok || !isThere || !contains(member, value) {
			return false
		}
	}
	return true
}

// substitute replaces each text $name by what was saved under the name.
func substitute(t *testing.T, value any, saved map[string]any) any {
	t.Helper()
	switch value := value.(type) {
	case string:
		name, isName := strings.CutPrefix(value, "$")
		if !isName {
			return value
		}
		found, ok := saved[name]
		if !ok {
			t.Fatalf("no step saved %s", name)
		}
		return found
	case []any:
		list := make([]any, len(value))
		for i, entry := range value {
			list[i] = substitute(t, entry, saved)
		}
		return list
	case map[string]any:
		members := map[string]any{}
		for name, member := range value {
			members[name] = substitute(t, member, saved)
		}
		return members
	}
	return value
}
