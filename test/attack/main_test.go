// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"os"
	"testing"

	"github.com/callbraid/callbraid/test/kit/flood"
)

// TestMain also runs the process of idle connections, which is this program with other arguments.
func TestMain(m *testing.M) {
	flood.RunIfChild()
	os.Exit(m.Run())
}
