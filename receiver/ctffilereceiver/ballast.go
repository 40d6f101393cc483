// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import "github.com/callbraid/callbraid/internal/componentkit/budget"

const (
	ballastBytes = 64 << 20
	// ballastPart is the largest part of the memory budget that a ballast may have, as its denominator.
	ballastPart = 8
)

// newBallast returns a part of the heap that is not used, or nil if the memory budget is small. Go collects garbage when
// the heap has doubled since the last collection. A collector that only reads files has a heap of about 10 MiB, so that
// it collects after every 25,000 log records, which takes a fifth of its time. With the ballast it collects a seventh as
// often. The budget does not count the ballast: nothing is written to it, so it has no pages.
func newBallast(memory *budget.Group) []byte {
	if memory.Limit() < ballastPart*ballastBytes {
		return nil
	}
	return make([]byte, ballastBytes)
}
