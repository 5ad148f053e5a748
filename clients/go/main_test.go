package latchkey

import (
	"os"
	"testing"
)

// The examples read the address and the root key of the service from the environment, as programs do.
func TestMain(m *testing.M) {
	for _, name := range []string{"URL", "ROOT_KEY"} {
		if err := os.Setenv("LATCHKEY_"+name, os.Getenv("LATCHKEY_TEST_"+name)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
