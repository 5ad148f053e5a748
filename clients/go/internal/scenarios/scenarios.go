// Package scenarios has what the tests need to run the scenarios that the clients in all languages share.
package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

// Scenario is a list of steps that share what they save.
type Scenario[Step any] struct {
	Name  string `json:"name"`
	Steps []Step `json:"steps"`
}

// Read reads a list of scenarios. A member that a step does not have is an error.
func Read[Step any](t *testing.T, path string) []Scenario[Step] {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []Scenario[Step]
	Decode(t, path, text, &scenarios)
	if len(scenarios) == 0 {
		t.Fatalf("%s has no scenarios", path)
	}
	return scenarios
}

// Call calls an operation by its name in the API. It returns the data as JSON with its secrets revealed; with
// all, the entries of all pages.
func Call(t *testing.T, client *latchkey.Client, operation string, input any, all bool) (any, error) {
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
		Decode(t, "the input of "+operation, text, typed.Interface())
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
		if secret, ok := value.Interface().(latchkey.Secret); ok {
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

// Decode reads JSON. A member that the target does not have is an error.
func Decode(t *testing.T, what string, text []byte, target any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Contains returns whether every member of the expected value is in the actual one.
func Contains(actual, expected any) bool {
	members, ok := expected.(map[string]any)
	if !ok {
		return expected == nil || reflect.DeepEqual(actual, expected)
	}
	object, ok := actual.(map[string]any)
	for name, value := range members {
		member, isThere := object[name]
		if !ok || !isThere || !Contains(member, value) {
			return false
		}
	}
	return true
}

var savedName = regexp.MustCompile(`\$\w+`)

// Substitute replaces each $name in texts by what was saved under the name.
func Substitute(t *testing.T, value any, saved map[string]any) any {
	t.Helper()
	find := func(name string) any {
		found, ok := saved[name[1:]]
		if !ok {
			t.Fatalf("no step saved %s", name)
		}
		return found
	}
	switch value := value.(type) {
	case string:
		if name := savedName.FindString(value); name != "" && name == value {
			return find(name)
		}
		return savedName.ReplaceAllStringFunc(value, func(name string) string { return fmt.Sprint(find(name)) })
	case []any:
		list := make([]any, len(value))
		for i, entry := range value {
			list[i] = Substitute(t, entry, saved)
		}
		return list
	case map[string]any:
		members := map[string]any{}
		for name, member := range value {
			members[name] = Substitute(t, member, saved)
		}
		return members
	}
	return value
}

// Service returns the address and the root key of the service that `npm run test:go` starts.
func Service(t testing.TB) (address string, rootKey latchkey.Secret) {
	t.Helper()
	address, key := os.Getenv("LATCHKEY_TEST_URL"), os.Getenv("LATCHKEY_TEST_ROOT_KEY")
	if address == "" || key == "" {
		t.Fatal("LATCHKEY_TEST_URL and LATCHKEY_TEST_ROOT_KEY name no service: run the tests with `npm run test:go`")
	}
	return address, latchkey.NewSecret(key)
}

// Main runs the tests of a package. Its examples read the address and the root key of the service from the environment, as
// programs do.
func Main(m *testing.M) {
	for _, name := range []string{"URL", "ROOT_KEY"} {
		if err := os.Setenv("LATCHKEY_"+name, os.Getenv("LATCHKEY_TEST_"+name)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
