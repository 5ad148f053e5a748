package latchkeyhttp_test

import (
	"testing"

	"github.com/latchkey/latchkey/clients/go/internal/scenarios"
)

func TestMain(m *testing.M) { scenarios.Main(m) }
