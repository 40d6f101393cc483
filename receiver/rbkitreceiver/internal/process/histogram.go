// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// Bounds are the upper bounds of the buckets, in seconds. The server's clock
// shows milliseconds.
var Bounds = [...]float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60}

// Histogram counts durations. Its zero value has none.
type Histogram struct {
	Buckets  [len(Bounds) + 1]uint64
	Count    uint64
	Sum      time.Duration
	Min, Max time.Duration
}

func (h *Histogram) Observe(d time.Duration) {
	at := 0
	for at < len(Bounds) && d.Seconds() > Bounds[at] {
		at++
	}
	h.Buckets[at]++
	if h.Count == 0 || d < h.Min {
		h.Min = d
	}
	h.Count++
	h.Sum = time.Duration(saturating.Add(int64(h.Sum), uint64(d)))
	h.Max = max(h.Max, d)
}
