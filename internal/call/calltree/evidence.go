// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "cmp"

// evidence is what a service has shown of itself. Anybody can send names; what takes an
// attacker long is to send each of many names for as long as a service is there.
type evidence struct {
	// items is how many spans, or samples, came.
	items uint64
	// seconds is in how many different seconds they did, and last the last of these.
	seconds, last uint32
}

// manyMore is how many times as much has to come in as many seconds to count as more.
const manyMore = 10

// add adds what came in a second.
func (e *evidence) add(second uint32, items uint64) {
	if e.seconds == 0 || e.last != second {
		e.seconds++
	}
	e.last = second
	e.items += items
}

// exceeds reports whether a service has shown more than another: in more seconds, or many
// times as much.
func (e *evidence) exceeds(other *evidence) bool {
	return e.seconds > other.seconds || e.seconds == other.seconds && e.items > manyMore*other.items
}

// compare orders by what was shown, least first, and then by what came last, oldest first.
func (e *evidence) compare(other *evidence) int {
	return cmp.Or(cmp.Compare(e.seconds, other.seconds), cmp.Compare(e.items, other.items), cmp.Compare(e.last, other.last))
}
