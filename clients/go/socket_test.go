package latchkey_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	latchkey "github.com/latchkey/latchkey/clients/go"
)

// The client of docs/local.md, over the Unix socket of an edge.
func TestClientOverUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	edge := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"meta":{"requestId":"req_1"},"data":{"valid":true,"code":"VALID"}}`))
	})}
	go func() { _ = edge.Serve(listener) }()
	defer edge.Close()

	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	client, err := latchkey.New(
		latchkey.WithURL("http://edge"),
		latchkey.WithRootKey(latchkey.NewSecret("root_1")),
		latchkey.WithHTTPClient(&http.Client{Transport: transport}),
	)
	if err != nil {
		t.Fatal(err)
	}
	result, err := client.Keys.VerifyKey(t.Context(), latchkey.VerifyKeyInput{Key: latchkey.NewSecret("key_1")})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-asked; !result.Data.Valid || got != "/v2/keys.verifyKey Bearer root_1" {
		t.Errorf("the edge was asked %q and answered %+v", got, result.Data)
	}
}
