package latchkeyhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/internal/scenarios"
	"github.com/latchkey/latchkey/clients/go/latchkeyhttp"
)

// holdScenario is one of the scenarios of holds that the middleware of every language runs: see sdk/test/hold-scenarios.ts.
type holdScenario struct {
	Name     string                             `json:"name"`
	Cost     *int64                             `json:"cost"`
	TTL      int64                              `json:"ttl"`
	Limits   []latchkey.VerifyKeyInputRatelimit `json:"limits"`
	FailOpen bool                               `json:"failOpen"`
	Method   string                             `json:"method"`
	Settle   any                                `json:"settle"`
	Handler  struct {
		Report *latchkey.Settlement `json:"report"`
		Status int                  `json:"status"`
		Chunks []string             `json:"chunks"`
		End    string               `json:"end"`
	} `json:"handler"`
	HangUp     string               `json:"hangUp"`
	Faults     []any                `json:"faults"`
	Network    string               `json:"network"`
	Status     int                  `json:"status"`
	Credits    int64                `json:"credits"`
	State      string               `json:"state"`
	Answer     map[string]any       `json:"answer"`
	Settlement *latchkey.Settlement `json:"settlement"`
	Ends       int                  `json:"ends"`
	Errors     int                  `json:"errors"`
	Unsettled  *latchkey.Settlement `json:"unsettled"`
}

// faulty is the network to the service, with faults of the calls that end a hold.
type faulty struct {
	isAway bool
	faults []any
	mutex  sync.Mutex
	ends   []string
}

func (f *faulty) RoundTrip(request *http.Request) (*http.Response, error) {
	if f.isAway {
		return nil, errors.New("away")
	}
	operation := path.Base(request.URL.Path)
	if operation != "holds.settleHold" && operation != "holds.releaseHold" {
		return http.DefaultTransport.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	var fault any
	f.mutex.Lock()
	f.ends = append(f.ends, string(body))
	if len(f.faults) > 0 {
		fault, f.faults = f.faults[0], f.faults[1:]
	}
	f.mutex.Unlock()
	if status, ok := fault.(float64); ok {
		text := `{"meta":{"requestId":"req_1"},"error":{"type":"/errors/planted","detail":"planted","status":1}}`
		return &http.Response{StatusCode: int(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
	}
	if fault == "away" {
		return nil, errors.New("away")
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if fault == "lost" && err == nil {
		_ = response.Body.Close()
		return nil, errors.New("lost")
	}
	return response, err
}

func (f *faulty) sent() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]string(nil), f.ends...)
}

func eventually(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !isSo(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func TestHoldScenarios(t *testing.T) {
	text, err := os.ReadFile("../../../sdk/test/hold-scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []holdScenario
	scenarios.Decode(t, "hold-scenarios.json", text, &list)
	address, rootKey := scenarios.Service(t)
	administrator := newClient(t, latchkey.WithURL(address), latchkey.WithRootKey(rootKey))
	api, err := administrator.APIs.CreateAPI(t.Context(), latchkey.CreateAPIInput{Name: "holds"})
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range list {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			playHold(t, administrator, address, rootKey, api.Data.APIID, scenario)
		})
	}
}

func playHold(
	t *testing.T, administrator *latchkey.Client, address string, rootKey latchkey.Secret, apiID string, scenario holdScenario,
) {
	remaining := int64(100)
	created, err := administrator.Keys.CreateKey(t.Context(), latchkey.CreateKeyInput{
		APIID: apiID, Credits: &latchkey.CreateKeyInputCredits{Remaining: latchkey.Value(remaining)},
	})
	if err != nil {
		t.Fatal(err)
	}
	network := &faulty{isAway: scenario.Network == "away", faults: scenario.Faults}
	client := newClient(t, latchkey.WithURL(address), latchkey.WithRootKey(rootKey), latchkey.WithTimeout(10*time.Second),
		latchkey.WithHTTPClient(&http.Client{Transport: network}))
	var mutex sync.Mutex
	var failures []error
	var answers []latchkeyhttp.EndedAnswer
	count := func() int { mutex.Lock(); defer mutex.Unlock(); return len(failures) }
	cost := int64(40)
	if scenario.Cost != nil {
		cost = *scenario.Cost
	}
	hold := &latchkeyhttp.HoldOptions{TTL: time.Duration(scenario.TTL) * time.Millisecond}
	if scenario.Settle != nil {
		hold.Settle = func(_ *http.Request, answer latchkeyhttp.EndedAnswer) (latchkey.Settlement, error) {
			mutex.Lock()
			answers = append(answers, answer)
			mutex.Unlock()
			members, isObject := scenario.Settle.(map[string]any)
			if !isObject {
				return latchkey.Settlement{}, errors.New("of the function")
			}
			if perByte, ok := members["perByte"].(float64); ok {
				return latchkey.Settlement{Credits: answer.Bytes * int64(perByte)}, nil
			}
			// Credits of Go are integers.
			return latchkey.Settlement{Credits: -1}, nil
		}
	}
	begun, received := make(chan struct{}), make(chan int, 100)
	var open *latchkey.OpenHold
	handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		open = latchkeyhttp.HoldFrom(request.Context())
		if scenario.Handler.Report != nil && !open.Report(*scenario.Handler.Report) {
			t.Error("the report does not count")
		}
		close(begun)
		isEarly := len(scenario.Handler.Chunks) == 0
		if isEarly && scenario.Handler.End == "throw" {
			panic(http.ErrAbortHandler)
		}
		if isEarly && scenario.Handler.End == "wait" {
			<-request.Context().Done()
			return
		}
		if scenario.Handler.Status != 0 {
			response.WriteHeader(scenario.Handler.Status)
		}
		for _, chunk := range scenario.Handler.Chunks {
			_, _ = io.WriteString(response, chunk)
			_ = http.NewResponseController(response).Flush()
			if scenario.Method != http.MethodHead {
				<-received
			}
		}
		switch scenario.Handler.End {
		case "throw":
			panic(http.ErrAbortHandler)
		case "wait":
			<-request.Context().Done()
		case "extended":
			first := open.ExpiresAt()
			eventually(t, "two extensions", func() bool { return open.ExpiresAt() > first+scenario.TTL/2 })
		}
	})
	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
		APIs: []string{apiID}, Cost: &cost, Hold: hold, Limits: scenario.Limits, FailOpen: scenario.FailOpen,
		OnError: func(_ *http.Request, err error) { mutex.Lock(); defer mutex.Unlock(); failures = append(failures, err) },
	})
	server := httptest.NewServer(verify(handler))
	defer server.Close()

	method := scenario.Method
	if method == "" {
		method = http.MethodGet
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+created.Data.Key.Reveal())
	exchange := func() {
		response, err := transport.RoundTrip(request)
		if err != nil {
			if scenario.Handler.End != "throw" && scenario.HangUp == "" {
				t.Error(err)
			}
			return
		}
		defer response.Body.Close()
		expected := max(scenario.Status, scenario.Handler.Status)
		if expected == 0 {
			expected = http.StatusOK
		}
		if response.StatusCode != expected {
			t.Errorf("the status is %d", response.StatusCode)
		}
		for _, chunk := range scenario.Handler.Chunks {
			if _, err := io.ReadFull(response.Body, make([]byte, len(chunk))); err != nil {
				return
			}
			received <- len(chunk)
		}
		if scenario.HangUp == "" {
			_, _ = io.Copy(io.Discard, response.Body)
		}
	}
	if scenario.HangUp == "before" {
		cancelled := make(chan struct{})
		ctx := request.Context()
		ctx, cancel := context.WithCancel(ctx)
		request = request.WithContext(ctx)
		go func() { exchange(); close(cancelled) }()
		<-begun
		cancel()
		<-cancelled
	} else {
		exchange()
	}
	eventually(t, "the end of the hold", func() bool { return count() > 0 || len(network.sent()) >= scenario.Ends })
	checkHold(t, administrator, created.Data.KeyID, scenario)

	mutex.Lock()
	defer mutex.Unlock()
	if len(failures) != scenario.Errors {
		t.Errorf("the errors are %v", failures)
	}
	var unsettled *latchkey.UnsettledHoldError
	if scenario.Unsettled != nil &&
		(!errors.As(failures[0], &unsettled) || unsettled.Settlement.Credits != scenario.Unsettled.Credits) {
		t.Errorf("the error is %v", failures[0])
	}
	ends := network.sent()
	if scenario.Ends != 0 && len(ends) != scenario.Ends {
		t.Errorf("%d calls ended the hold", len(ends))
	}
	for _, end := range ends {
		if scenario.Ends != 0 && end != ends[0] {
			t.Errorf("a repetition has other amounts: %s", end)
		}
	}
	checkAnswer(t, scenario, answers)
	if scenario.State == "settled" && scenario.Handler.Report != nil && open.Report(latchkey.Settlement{}) {
		t.Error("a report after the end counts")
	}
}

// The context of a request ends with the half of the connection that the end user closes. The answer can still be sent.
func TestAnAnswerAfterTheEndOfTheContextIsCharged(t *testing.T) {
	client, apiID, created := heldKey(t)
	cost := int64(40)
	settled := make(chan latchkeyhttp.EndedAnswer, 1)
	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
		APIs: []string{apiID}, Cost: &cost,
		Hold: &latchkeyhttp.HoldOptions{
			Settle: func(request *http.Request, answer latchkeyhttp.EndedAnswer) (latchkey.Settlement, error) {
				if key, ok := latchkeyhttp.KeyFrom(request.Context()); !ok || key.KeyID != created.KeyID {
					t.Error("the settlement does not know the key")
				}
				if latchkeyhttp.HoldFrom(request.Context()).Report(latchkey.Settlement{Credits: 1}) {
					t.Error("a report counts that comes after the end")
				}
				settled <- answer
				return latchkey.Settlement{Credits: answer.Bytes}, nil
			},
		},
	})
	server := httptest.NewServer(verify(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		_, _ = io.WriteString(response, "hello")
		_ = http.NewResponseController(response).Flush()
		<-request.Context().Done()
		if latchkeyhttp.HoldFrom(request.Context()).Report(latchkey.Settlement{Credits: 3}) {
			t.Error("the report does not tell that the context has ended")
		}
		_, _ = io.WriteString(response, "world")
	})))
	defer server.Close()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	_, _ = fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", created.Key.Reveal())
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.(*net.TCPConn).CloseWrite()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "helloworld" {
		t.Errorf("the end user got %q: %v", body, err)
	}
	if answer := <-settled; answer.Bytes != 10 || answer.Reported == nil || answer.Reported.Credits != 3 {
		t.Errorf("the answer is %+v", answer)
	}
	checkHold(t, client, created.KeyID, holdScenario{State: "settled", Credits: 90})
}

func TestAReportBelowZeroAndAPanicOfOnErrorChangeNothing(t *testing.T) {
	client, apiID, created := heldKey(t)
	verify := latchkeyhttp.Verify(client, latchkeyhttp.VerifyOptions{
		APIs: []string{apiID},
		Hold: &latchkeyhttp.HoldOptions{
			Settle: func(*http.Request, latchkeyhttp.EndedAnswer) (latchkey.Settlement, error) {
				return latchkey.Settlement{}, errors.New("of the function")
			},
		},
		OnError: func(*http.Request, error) { panic("of the function") },
	})
	handler := verify(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		hold := latchkeyhttp.HoldFrom(request.Context())
		if !hold.Report(latchkey.Settlement{Credits: -1}) || hold.Reported() != nil {
			t.Error("a report below 0 counts")
		}
		response.WriteHeader(http.StatusNoContent)
	}))
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Authorization", "Bearer "+created.Key.Reveal())
	handler.ServeHTTP(httptest.NewRecorder(), request)
	// The function of the answer has failed.
	checkHold(t, client, created.KeyID, holdScenario{State: "settled", Credits: 99})
}

// heldKey returns a client, a new API and a key of it with 100 credits.
func heldKey(t *testing.T) (*latchkey.Client, string, latchkey.CreateKeyOutput) {
	t.Helper()
	address, rootKey := scenarios.Service(t)
	client := newClient(t, latchkey.WithURL(address), latchkey.WithRootKey(rootKey))
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
	return client, api.Data.APIID, created.Data
}

func checkAnswer(t *testing.T, scenario holdScenario, answers []latchkeyhttp.EndedAnswer) {
	t.Helper()
	if scenario.Answer == nil {
		return
	}
	if len(answers) != 1 {
		t.Fatalf("%d answers were settled", len(answers))
	}
	answer := answers[0]
	actual := map[string]any{
		"complete": answer.Complete, "status": float64(answer.Status), "bytes": float64(answer.Bytes),
		"chunks": float64(answer.Chunks), "cost": float64(answer.Cost), "reported": nil,
	}
	for name, expected := range scenario.Answer {
		if actual[name] != expected {
			t.Errorf("%s is %v, not %v", name, actual[name], expected)
		}
	}
}

func checkHold(t *testing.T, administrator *latchkey.Client, keyID string, scenario holdScenario) {
	t.Helper()
	states := func() (found []string) {
		holds, err := administrator.Holds.ListHolds(t.Context(), latchkey.ListHoldsInput{KeyID: &keyID})
		if err != nil {
			t.Fatal(err)
		}
		for _, hold := range holds.Data {
			found = append(found, string(hold.State))
		}
		return found
	}
	if scenario.State == "settled" || scenario.State == "released" {
		eventually(t, scenario.State, func() bool { found := states(); return len(found) > 0 && found[0] != "open" })
	}
	if found := strings.Join(states(), ","); found != scenario.State {
		t.Errorf("the states are %q", found)
	}
	key, err := administrator.Keys.GetKey(t.Context(), latchkey.GetKeyInput{KeyID: keyID})
	if err != nil {
		t.Fatal(err)
	}
	left, err := json.Marshal(key.Data.Credits.Remaining)
	if err != nil {
		t.Fatal(err)
	}
	if string(left) != fmt.Sprint(scenario.Credits) {
		t.Errorf("%s credits are left", left)
	}
}
