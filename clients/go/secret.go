package latchkey

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that must not be logged, such as a key string. It prints as [redacted] with every verb of
// fmt, in JSON and in slog; Reveal returns the text. The zero value is an empty text.
type Secret struct {
	// Secrets are compared by no operator: it would compare the addresses of the texts.
	_ [0]func()
	// A pointer, because fmt prints a field that is not exported without its methods.
	text *string
}

// NewSecret returns the text as a secret.
func NewSecret(text string) Secret {
	return Secret{text: &text}
}

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero returns whether the text is empty. A member of an input with an empty secret is omitted.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String returns [redacted].
func (s Secret) String() string { return redacted }

// GoString returns [redacted].
func (s Secret) GoString() string { return redacted }

// Format prints [redacted] for every verb.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// LogValue returns [redacted].
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns [redacted].
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText reads the text itself.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
