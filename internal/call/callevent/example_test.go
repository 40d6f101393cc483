// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent_test

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// A receiver packs the events of one call stream, and ends the stream with its last batch.
func ExamplePacker() {
	stream := callevent.Stream{
		ID: callevent.StreamID{1}, // for a real stream: random, or a hash that is the same when the recording is read again
		// Ticks are nanoseconds of the Unix clock.
		Epoch: 0, Resolution: 1,
		TextKey: "example.function",
	}
	packer, err := callevent.NewPacker(stream, 256<<10)
	if err != nil {
		panic(err) // the settings are out of bounds
	}
	// The tables return indexes, which are valid until Reset. A receiver caches them by Generation.
	lane, _ := packer.Lane(callevent.Lane{ID: 7, Name: "main"})
	function, _ := packer.Function(&callevent.Function{Qualified: "com.example.Shop.buy", Display: "Shop.buy", Text: "com.example.Shop.buy()V"})

	const began = 1_700_000_000_000_000_000
	events := []callevent.Event{
		{Sequence: 0, Time: began, Lane: lane, Function: function, Kind: callevent.KindEnter},
		{Sequence: 1, Time: began + 1000, Lane: lane, Function: function, Kind: callevent.KindExit},
	}
	for i := range events {
		if !packer.Add(&events[i]) {
			panic("full: Close, send and Reset, then Add again") // any event fits into an empty batch
		}
	}

	// The end is before number 2. The package comment describes which earlier barriers a receiver repeats.
	next := uint64(len(events))
	end := callevent.End(next, callevent.CauseEnded)
	packed, err := packer.Close([]callevent.Barrier{end}, next, began+2000)
	if err != nil {
		panic(err)
	}
	span := ptrace.NewSpan()
	packed.To(span) // handover.Batches does this, and sends the span
	packer.Reset()

	data, err := callevent.Data(span)
	if err != nil {
		panic(err)
	}
	var batch callevent.Batch
	if err := batch.Unpack(data); err != nil {
		panic(err)
	}
	fmt.Println(span.Name(), batch.Len(), batch.Functions[0].Display, batch.Barriers[0].Cause)
	// Output: call events 2 Shop.buy ended
}
