// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callstream_test

import (
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
)

// printed is the Output of a receiver: it sends batches with a handover.Batches.
type printed struct{}

func (printed) SendBatch(_ callevent.Packed, events int) { fmt.Println("a batch of", events, "events") }
func (printed) OfferBatch(callevent.Packed)              {}
func (printed) DropBatch(int)                            {}

// A receiver numbers and packs the events of a process, and ends the stream when the process has ended.
func ExampleStream() {
	s := callstream.New(&callstream.Settings{
		TextKey: "example.function", MaxBytes: 256 << 10, MaxDelay: time.Second, KeepaliveInterval: 10 * time.Second, Now: time.Now,
	}, printed{}, 0)
	if err := s.Open(callevent.StreamID{1}); err != nil { // for a real stream: random
		panic(err)
	}
	buy := &callstream.Function{Function: callevent.Function{Qualified: "shop.buy", Display: "buy", Text: "buy()"}}
	thread := &callstream.Lane{Lane: callevent.Lane{ID: 7, Name: "main"}}

	const began = 1_700_000_000_000_000_000 // nanoseconds since 1970
	s.Pack(callevent.KindEnter, s.AssignNumber(), began, buy, thread, nil)
	s.Pack(callevent.KindExit, s.AssignNumber(), began+1000, buy, thread, nil)
	s.BreakHere(callevent.CauseDiscarded) // the tracer had no room for some events
	s.DeliverDue(time.Now())              // after each read, and when its deadline has passed
	s.Close(callevent.CauseEnded, false)
	// Output: a batch of 2 events
}
