// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "cmp"

// evidence shows how long a service has been there. Anybody can send names, but sending each of
// many names for a long time takes an attacker long.
type evidence struct {
	// items is the number of spans or samples.
	items uint64
	// seconds is the number of different seconds with items, and last the last of these.
	seconds, last uint32
}

// manyMore is the factor between items in as many seconds that counts as more.
const manyMore = 10

// add adds the items of a second.
func (e *evidence) add(second uint32, items uint64) {
	if e.seconds == 0 || e.last != second {
		e.seconds++
	}
	e.last = second
	e.items += items
}

// exceeds reports whether this is clearly more: in more seconds, or many times the items.
func (e *evidence) exceeds(other *evidence) bool {
	return e.seconds > other.seconds || e.seconds == other.seconds && e.items > manyMore*other.items
}

// compare orders by the amount, least first, and then by the last second, oldest first.
func (e *evidence) compare(other *evidence) int {
	return cmp.Or(cmp.Compare(e.seconds, other.seconds), cmp.Compare(e.items, other.items), cmp.Compare(e.last, other.last))
}
