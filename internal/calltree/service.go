// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// Service is what is known of a service.
type Service struct {
	// Name is the service's as telemetry told it: it can be anything, empty too.
	Name string
	// Threads is how many threads made calls; ThreadsMore that there were more than are
	// counted.
	Threads     int
	ThreadsMore bool
	// Calls and Errors are since From, the start or the last reset.
	Calls, Errors uint64
	From          time.Time
	// Rate is how many calls came in a second, of late.
	Rate float64
	// LastSeen is when the last call or sample came.
	LastSeen time.Time
	// Kinds are those that there are trees of: Calls first, then in the order of their
	// texts.
	Kinds []Kind
}
