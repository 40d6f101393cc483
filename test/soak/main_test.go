// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"os"
	"testing"

	"github.com/callbraid/callbraid/test/kit/flood"
)

// TestMain lets idle connections have a process of their own, which runs this program again.
func TestMain(m *testing.M) {
	flood.RunIfChild()
	os.Exit(m.Run())
}
