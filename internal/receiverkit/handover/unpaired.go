// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"sync"

	"go.uber.org/zap"
)

// WarnUnpaired returns a function that logs, at its first call, that no stack_pairing follows. Many goroutines can call
// the function.
func WarnUnpaired(logger *zap.Logger) func() {
	return sync.OnceFunc(func() {
		logger.Warn("No stack_pairing follows: backends receive packed call events in place of spans of functions. " +
			"Put stack_pairing into the traces pipeline of this receiver. " +
			"If another collector pairs the batches, or a queue stands in front of stack_pairing, set expect_pairing: false")
	})
}
