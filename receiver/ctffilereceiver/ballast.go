// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import "github.com/callbraid/callbraid/internal/componentkit/budget"

// ballastBytes is the size of a ballast. The operating system has no pages for it, because nothing is written to it.
const ballastBytes = 32 << 20

// ballast is a part of the heap that is not used. Go collects garbage when the heap has doubled since the last
// collection. A collector that only reads files has a heap of about 10 MiB, so that it collects after every 25,000 log
// records, which takes a fifth of its time. With the ballast it collects a quarter as often.
type ballast struct {
	account *budget.Account
	bytes   []byte
	// asked receives a value when the budget needs the memory.
	asked chan struct{}
}

// newBallast returns a ballast, which is empty if the budget has no room for it.
func newBallast(memory *budget.Group) *ballast {
	b := &ballast{asked: make(chan struct{}, 1)}
	b.account = memory.Open(budget.Settings{Shrink: func(int64) {
		select {
		case b.asked <- struct{}{}:
		default:
		}
	}})
	if b.account.ReserveIfRoom(ballastBytes) {
		b.bytes = make([]byte, ballastBytes)
	}
	return b
}

// drop returns the memory. A second call does nothing.
func (b *ballast) drop() {
	b.bytes = nil
	b.account.Close()
}
