package latchkey_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

func Example() {
	ctx := context.Background()

	client, err := latchkey.New() // The address and the root key are LATCHKEY_URL and LATCHKEY_ROOT_KEY.
	if err != nil {
		log.Fatal(err)
	}
	result, err := client.Keys.VerifyKey(ctx, latchkey.VerifyKeyInput{Key: latchkey.NewSecret("prod_3kAqEg4u4qMxCGFAVMuGsb3cijGp")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Data.Valid, result.Data.Code)
	// Output: false NOT_FOUND
}

// newAPI returns a client and a new API.
func newAPI(ctx context.Context) (*latchkey.Client, string) {
	client, err := latchkey.New()
	if err != nil {
		log.Fatal(err)
	}
	api, err := client.APIs.CreateAPI(ctx, latchkey.CreateAPIInput{Name: "documents"})
	if err != nil {
		log.Fatal(err)
	}
	return client, api.Data.APIID
}

func ExampleSecret() {
	ctx := context.Background()
	client, apiID := newAPI(ctx)

	created, err := client.Keys.CreateKey(ctx, latchkey.CreateKeyInput{APIID: apiID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created.Data.Key)          // [redacted]
	keyString := created.Data.Key.Reveal() // Give it to your user.

	for key, err := range client.APIs.ListKeysAll(ctx, latchkey.ListKeysInput{APIID: apiID}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.HasPrefix(keyString, key.Start), key.Enabled)
	}
	// Output:
	// [redacted]
	// true true
}

func ExampleNullable() {
	ctx := context.Background()
	client, apiID := newAPI(ctx)
	created, err := client.Keys.CreateKey(ctx, latchkey.CreateKeyInput{APIID: apiID, Name: latchkey.Ptr("first")})
	if err != nil {
		log.Fatal(err)
	}
	keyID := created.Data.KeyID

	_, err = client.Keys.UpdateKey(ctx, latchkey.UpdateKeyInput{
		KeyID:       keyID,
		Name:        latchkey.Null[string](),              // null: removes the name
		Expires:     latchkey.Value(int64(4102444800000)), // a new value
		Enabled:     latchkey.Ptr(false),                  // an optional member
		Permissions: []string{},                           // an empty list
	})
	if err != nil {
		log.Fatal(err)
	}
	key, err := client.Keys.GetKey(ctx, latchkey.GetKeyInput{KeyID: keyID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q %d %t\n", key.Data.Name, *key.Data.Expires, key.Data.Enabled)
	// Output: "" 4102444800000 false
}

func ExampleError() {
	ctx := context.Background()
	client, err := latchkey.New()
	if err != nil {
		log.Fatal(err)
	}

	_, err = client.Keys.GetKey(ctx, latchkey.GetKeyInput{KeyID: "key_unknown"})
	var failure *latchkey.Error
	if errors.Is(err, latchkey.ErrDataKeyNotFound) {
		fmt.Println("no such key")
	} else if errors.As(err, &failure) {
		fmt.Println(failure.Type, failure.Status, failure.Detail, failure.Errors, failure.RetryAfter)
	}
	// Output: no such key
}

func ExampleVerifyWebhook() {
	secret := latchkey.NewSecret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDfeFmWbXLK0E=")

	http.HandleFunc("POST /webhook", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "The message is too large.", http.StatusRequestEntityTooLarge)
			return
		}
		event, err := latchkey.VerifyWebhook(body, r.Header, secret)
		if err != nil {
			http.Error(w, "The message is not one of Latchkey.", http.StatusUnauthorized)
			return
		}
		// Store event.ID with what you do, and skip an event that you have: it may come twice.
		if data, ok := event.Data.(*latchkey.KeyCreatedEvent); ok {
			fmt.Println(event.Type, data.KeyID)
		}
		w.WriteHeader(http.StatusNoContent)
	})

	body := `{"id":"evt_1","type":"key.created","version":1,"timestamp":"2026-09-21T13:33:20Z","data":{"keyId":"key_1"}}`
	for _, signed := range []string{body, "{}"} {
		response := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(response, message(secret, body, signed))
		fmt.Println(response.Code)
	}
	// Output:
	// key.created key_1
	// 204
	// 401
}

// message returns a request with the body, and with the signature of a text.
func message(secret latchkey.Secret, body, signed string) *http.Request {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("evt_1." + timestamp + "." + signed))
	request := httptest.NewRequest(http.MethodPost, "/webhook", strings.NewReader(body))
	request.Header.Set("webhook-id", "evt_1")
	request.Header.Set("webhook-timestamp", timestamp)
	request.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return request
}

// The code of the README runs here.
func TestReadmeHasTheCodeOfTheExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples string
	for _, path := range []string{"example_test.go", "latchkeyhttp/example_test.go", "latchkeygin/gin_test.go"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		examples += string(text)
	}
	blocks := strings.Split(string(readme), "\n```go\n")[1:]
	if len(blocks) != 9 {
		t.Fatalf("the README has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "\n```\n")
		if !strings.Contains(unspaced(examples), unspaced(code)) {
			t.Errorf("no example contains:\n%s", code)
		}
	}
}

// unspaced returns lines with one space where there were several, which gofmt changes.
func unspaced(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
