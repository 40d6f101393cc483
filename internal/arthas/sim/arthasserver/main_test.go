// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
