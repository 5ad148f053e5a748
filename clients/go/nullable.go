package latchkey

import (
	"bytes"
	"encoding/json"
)

// Nullable is a member of an input that can be null. The zero value omits the member, [Null] sends null, and
// [Value] sends a value. An update changes nothing that is omitted.
type Nullable[T any] struct {
	value     T
	isPresent bool
	isNull    bool
}

// Value returns a member with a value.
func Value[T any](value T) Nullable[T] {
	return Nullable[T]{value: value, isPresent: true}
}

// Null returns a member that is null.
func Null[T any]() Nullable[T] {
	return Nullable[T]{isPresent: true, isNull: true}
}

// Ptr returns a pointer to the value, for the optional members of an input.
func Ptr[T any](value T) *T { return &value }

// IsZero returns whether the member is omitted.
func (n Nullable[T]) IsZero() bool { return !n.isPresent }

// MarshalJSON returns the value, or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if !n.isPresent || n.isNull {
		return []byte("null"), nil
	}
	return json.Marshal(n.value)
}

// UnmarshalJSON reads a value, or null.
func (n *Nullable[T]) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		*n = Null[T]()
		return nil
	}
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	*n = Value(value)
	return nil
}
