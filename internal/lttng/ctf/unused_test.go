// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// placed is an event without values: its class, its time and its end.
type placed struct {
	class         string
	clock, offset uint64
}

// placesOf returns the places of all events of a packet, and the error after them.
func placesOf(t *testing.T, r *ctf.Reader, packet []byte) (places []placed, err error) {
	t.Helper()
	require.NoError(t, r.Begin(packet))
	for r.Next() {
		places = append(places, placed{r.Event.Class.Name, r.Event.Clock, r.Offset()})
	}
	return places, r.Err()
}

func TestEventsOfUnusedClassesHaveTheSamePlaces(t *testing.T) {
	passed := 0
	for _, c := range lttngdata.Captures {
		files := lttngdata.OpenCapture(t, c.Name)
		used, unused := lttngdata.OpenTrace(t, files), lttngdata.OpenTrace(t, files)
		for _, stream := range unused.Trace.StreamClasses() {
			for class := range stream.Events() {
				class.Unused = true
				passed += class.PassedBits()
			}
		}
		for _, packets := range lttngdata.Packets(t, used) {
			all, some := ctf.NewReader(used.Trace), ctf.NewReader(unused.Trace)
			for _, packet := range packets {
				want, err := placesOf(t, all, packet)
				require.NoError(t, err)
				got, err := placesOf(t, some, packet)
				require.NoError(t, err)
				require.Equal(t, want, got, c.Name)
			}
		}
	}
	assert.NotZero(t, passed, "a capture has classes of a fixed size")
}

func TestAnUnusedEventThatThePacketCutsIsAnError(t *testing.T) {
	const text = `/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le;
		packet.header := struct { integer { size = 32; align = 8; } magic; }; };
		stream { event.header := struct { integer { size = 8; align = 8; } id; }; };
		event { id = 1; name = "pair"; fields := struct { integer { size = 16; align = 8; } a; integer { size = 16; align = 8; } b; }; };`
	magic := []byte{0xC1, 0x1F, 0xFC, 0xC1}
	for size := 1; size < 5; size++ {
		var messages []string
		for _, unused := range []bool{false, true} {
			trace := ctf.NewTrace()
			require.NoError(t, trace.Append([]byte(text)))
			packet := append(append([]byte{}, magic...), []byte{1, 1, 2, 3, 4, 1, 5, 6, 7, 8}[:5+size]...)
			r := ctf.NewReader(trace)
			require.NoError(t, r.Begin(packet)) // the first packet makes the class
			for class := range trace.StreamClasses()[0].Events() {
				class.Unused = unused
			}
			places, err := placesOf(t, r, packet)
			require.Len(t, places, 1)
			require.Error(t, err)
			messages = append(messages, err.Error())
		}
		assert.Equal(t, messages[0], messages[1])
	}
}
