package latchkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	webhookPrefix    = "whsec_"
	webhookTolerance = 5 * time.Minute
	// The service sends two while a secret rotates.
	webhookSignaturesMax = 16
	// As the specification says.
	webhookSecretBytesMin = 24
	webhookSecretBytesMax = 64
)

var webhookTimestamp = regexp.MustCompile(`^[0-9]{1,12}$`)

// ErrWebhook is in the error of [VerifyWebhook] for a message that is not from the service, or too old. Answer it with
// 401. Any other error is that of a secret that cannot be one.
var ErrWebhook = errors.New("latchkey: the message to the webhook is rejected")

// WebhookEvent is an event that a webhook gets.
type WebhookEvent struct {
	// The same in every delivery of the event.
	ID string
	// What happened. A newer service can send types that have no constant.
	Type EventType
	// The version of the schema of Data.
	Version int64
	// When it happened.
	Timestamp time.Time
	// A pointer to the type of Type, such as *KeyCreatedEvent for EventTypeKeyCreated; a map[string]any for a type that
	// this version of the client does not know.
	Data any
}

// VerifyWebhook returns the event of a message to a webhook, after its signature and its time were checked as Standard
// Webhooks says. A message may be up to 5 minutes old. The body is that which was received: decoding and encoding it
// again changes its bytes. With several secrets, a message with a signature by one of them is accepted.
func VerifyWebhook(body []byte, header http.Header, secrets ...Secret) (*WebhookEvent, error) {
	return verifyWebhook(time.Now(), body, header, secrets)
}

func verifyWebhook(now time.Time, body []byte, header http.Header, secrets []Secret) (*WebhookEvent, error) {
	if len(secrets) == 0 {
		return nil, errors.New("latchkey: the secret of the webhook is missing")
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		text := strings.TrimPrefix(strings.TrimSpace(secret.Reveal()), webhookPrefix)
		key, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(key) < webhookSecretBytesMin || len(key) > webhookSecretBytesMax {
			return nil, errors.New("latchkey: the secret of the webhook must be whsec_ and Base64, as CreateWebhook returned it")
		}
		keys[i] = key
	}
	id, timestamp, signature := header.Get("webhook-id"), header.Get("webhook-timestamp"), header.Get("webhook-signature")
	if id == "" || timestamp == "" || signature == "" {
		return nil, rejectedMessage("it has no signature")
	}
	if !webhookTimestamp.MatchString(timestamp) {
		return nil, rejectedMessage("its time is not a number")
	}
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); age > webhookTolerance || age < -webhookTolerance {
		return nil, rejectedMessage("it is more than 5 minutes old, or the clock of one side is wrong")
	}
	if !isSigned(keys, id+"."+timestamp+".", body, signature) {
		return nil, rejectedMessage("no signature is by the secret of the webhook")
	}
	return readEvent(body)
}

// isSigned makes every comparison, in constant time.
func isSigned(keys [][]byte, head string, body []byte, signatures string) bool {
	found := strings.SplitN(signatures, " ", webhookSignaturesMax+1)
	isSigned := false
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(head))
		mac.Write(body)
		sum := mac.Sum(nil)
		for _, each := range found[:min(len(found), webhookSignaturesMax)] {
			text, isKnown := strings.CutPrefix(each, "v1,")
			signature, err := base64.StdEncoding.Strict().DecodeString(text)
			if isKnown && err == nil && hmac.Equal(sum, signature) {
				isSigned = true
			}
		}
	}
	return isSigned
}

func readEvent(body []byte) (*WebhookEvent, error) {
	var read struct {
		ID        string          `json:"id"`
		Type      EventType       `json:"type"`
		Version   int64           `json:"version"`
		Timestamp time.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &read); err != nil || read.ID == "" || read.Type == "" || len(read.Data) == 0 {
		return nil, rejectedMessage("it is not an event")
	}
	event := &WebhookEvent{ID: read.ID, Type: read.Type, Version: read.Version, Timestamp: read.Timestamp}
	event.Data = newEventData(read.Type)
	var err error
	if event.Data != nil {
		err = json.Unmarshal(read.Data, event.Data)
	} else {
		members := map[string]any{}
		err = json.Unmarshal(read.Data, &members)
		event.Data = members
	}
	if err != nil {
		return nil, rejectedMessage("it is not an event")
	}
	return event, nil
}

func rejectedMessage(reason string) error { return fmt.Errorf("%w: %s", ErrWebhook, reason) }
