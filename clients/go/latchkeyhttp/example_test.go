package latchkeyhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/latchkeyhttp"
)

func ExampleVerify() {
	client, err := latchkey.New()
	if err != nil {
		log.Fatal(err)
	}
	apiID, plainKey, keyString := newKeys(client)
	mux := http.NewServeMux()

	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{APIs: []string{apiID}})
	mux.Handle("GET /documents/{id}", verify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := latchkeyhttp.KeyFrom(r.Context())
		owner := "nobody"
		if key.Identity != nil { // Nil for a key that was created without an owner.
			owner = key.Identity.ExternalID
		}
		fmt.Fprintln(w, "document", r.PathValue("id"), "for", owner)
	})))

	for _, authorization := range []string{"", "Bearer " + plainKey, "Bearer " + keyString, "Bearer " + keyString} {
		ask(mux, authorization)
	}
	// Output:
	// 401 The request has no API key in the header Authorization.
	// 200 document 7 for nobody
	// 200 document 7 for user_1
	// 429 The API key has reached a limit.
}

func ExampleRatelimit() {
	client, err := latchkey.New()
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /documents/{id}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "welcome") })

	limit := latchkeyhttp.Ratelimit(client, latchkeyhttp.RatelimitOptions{
		Namespace: "visitors", Limit: 1, Duration: 24 * time.Hour, Identifier: latchkeyhttp.ByAddress,
	})
	server := &http.Server{Handler: limit(mux), ReadHeaderTimeout: 10 * time.Second}

	for range 2 {
		ask(server.Handler, "")
	}
	// Output:
	// 200 welcome
	// 429 A limit of requests has been reached.
}

// newKeys returns a new API, a key of it without an identity, credits and limits, and one that is valid once a day.
func newKeys(client *latchkey.Client) (apiID, plainKey, limitedKey string) {
	ctx := context.Background()
	api, err := client.APIs.CreateAPI(ctx, latchkey.CreateAPIInput{Name: "documents"})
	if err != nil {
		log.Fatal(err)
	}
	plain, err := client.Keys.CreateKey(ctx, latchkey.CreateKeyInput{APIID: api.Data.APIID})
	if err != nil {
		log.Fatal(err)
	}
	limited, err := client.Keys.CreateKey(ctx, latchkey.CreateKeyInput{
		APIID:      api.Data.APIID,
		ExternalID: latchkey.Ptr("user_1"),
		Ratelimits: []latchkey.CreateKeyInputRatelimit{
			{Name: "requests", Limit: 1, Duration: 86_400_000, AutoApply: latchkey.Ptr(true)},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	return api.Data.APIID, plain.Data.Key.Reveal(), limited.Data.Key.Reveal()
}

// ask prints the status of an answer, and its text.
func ask(handler http.Handler, authorization string) {
	request := httptest.NewRequest(http.MethodGet, "/documents/7", nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	text := strings.TrimSpace(response.Body.String())
	var rejection struct{ Error struct{ Detail string } }
	if json.Unmarshal(response.Body.Bytes(), &rejection) == nil {
		text = rejection.Error.Detail
	}
	fmt.Println(response.Code, text)
}
