package latchkey

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"
)

// webhookScenario is an entry of the list that all clients share: see sdk/test/webhook.test.ts.
type webhookScenario struct {
	Name    string            `json:"name"`
	Secrets []string          `json:"secrets"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Now     int64             `json:"now"`
	Result  string            `json:"result"`
	Event   struct {
		Type EventType `json:"type"`
		Data struct {
			KeyID string `json:"keyId"`
			Name  string `json:"name"`
		} `json:"data"`
	} `json:"event"`
}

func TestMessagesToWebhooks(t *testing.T) {
	text, err := os.ReadFile("../../sdk/test/webhook-scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []webhookScenario
	if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 {
		t.Fatal(err, len(list))
	}
	for _, scenario := range list {
		t.Run(scenario.Name, func(t *testing.T) {
			header := http.Header{}
			for name, value := range scenario.Headers {
				header.Set(name, value)
			}
			var secrets []Secret
			for _, each := range scenario.Secrets {
				secrets = append(secrets, NewSecret(each))
			}
			event, err := verifyWebhook(time.Unix(scenario.Now, 0), []byte(scenario.Body), header, secrets)
			result := "accepted"
			if err != nil {
				result = "unusable"
			}
			if errors.Is(err, ErrWebhook) {
				result = "rejected"
			}
			if result != scenario.Result {
				t.Fatal(result, err)
			}
			if err != nil {
				return
			}
			if event.Type != scenario.Event.Type {
				t.Error(event.Type)
			}
			switch data := event.Data.(type) {
			case *KeyCreatedEvent:
				if expected := scenario.Event.Data; data.KeyID != expected.KeyID || data.Name != expected.Name && expected.Name != "" {
					t.Errorf("%+v", data)
				}
			case map[string]any:
				if data["crater"] != 7.0 {
					t.Errorf("%+v", data)
				}
			default:
				t.Errorf("%T", data)
			}
			if _, err := VerifyWebhook([]byte(scenario.Body), header, secrets...); !errors.Is(err, ErrWebhook) {
				t.Error("a message of another year is accepted", err)
			}
		})
	}
}
