// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// long is a frame with a long size.
func long(flags byte, body string) string {
	return string(binary.BigEndian.AppendUint64([]byte{flags | 2}, uint64(len(body)))) + body
}

func TestMessagesAreReceivedAsTheyWereSent(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 100_000)
	tests := []struct {
		name    string
		traffic string
		got     []string
		answers string // to commands
	}{
		{"nothing", "", nil, ""},
		{"messages of one part", "\x00\x01a\x00\x02bc", []string{"a", "bc"}, ""},
		{"an empty message", "\x00\x00\x00\x01a", []string{"", "a"}, ""},
		{"several parts, empty ones among them", "\x01\x01a\x01\x00\x00\x01b\x00\x01c", []string{"a||b", "c"}, ""},
		{"a long frame that could be short", long(0, "a") + long(1, "b") + long(0, "c"), []string{"a", "b|c"}, ""},
		{"messages that are larger than the first buffer", long(0, big) + "\x00\x01a" + long(1, big) + long(0, big), []string{big, "a", big + "|" + big}, ""},
		{"PING is answered with its context", "\x04\x0b\x04PING\x00\x0aabcd\x00\x01a", []string{"a"}, "\x04\x09\x04PONGabcd"},
		{"PING without a context", pingNoLimit, nil, "\x04\x05\x04PONG"},
		{"PING between the parts of a message", "\x01\x01a" + pingNoLimit + "\x00\x01b\x00\x01c", []string{"a|b", "c"}, "\x04\x05\x04PONG"},
		{"PONG and unknown commands are skipped", "\x04\x05\x04PONG\x04\x04\x01X12\x00\x01a", []string{"a"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range []int{0, 1, 7, 70_000} {
				if piece == 1 && len(tt.traffic) > 1<<20 {
					continue // too slow
				}
				conn := newScript(pub+tt.traffic, piece)
				got, err := received(t, conn, zmtp.Options{})
				require.ErrorIs(t, err, zmtp.ErrClosed)
				require.Equal(t, tt.got, got)
				require.Equal(t, null31+ready("SUB")+tt.answers, conn.told.String())
			}
		})
	}
}

// wrongTraffic is traffic that breaks the protocol, or the limits of 100 bytes a frame, 150 a
// message and 3 parts.
var wrongTraffic = []struct {
	name, traffic string
	got           []string // before
	err           string
}{
	{"the end in the middle of a frame", "\x00\x05abc", nil, "byte 96: expected the rest of a frame, got: the connection was closed"},
	{"the end in a header", "\x00\x01a\x02\x00", []string{"a"}, "byte 96: expected the header of a frame, got: the connection was closed"},
	{"the end between parts", "\x01\x01a", nil, "byte 94: expected a frame, got: the connection was closed"},
	{"reserved flags", "\x00\x01a\x08\x01b", []string{"a"}, "byte 94: expected flags of a frame with reserved bits 0, got 0x08"},
	{"a command with more to follow", "\x05\x05\x04PONG", nil, "byte 91: expected a command of one frame, got flags 0x05, of a command with more to follow"},
	{"a frame of 2^62 bytes", "\x02\x40\x00\x00\x00\x00\x00\x00\x00", nil, "byte 92: expected a frame of at most 100 bytes, got a size of 4611686018427387904"},
	{"a frame of 2^63 bytes", "\x02\x80\x00\x00\x00\x00\x00\x00\x00", nil, "byte 92: expected a size of a frame below 2^63, got 9223372036854775808"},
	{"a frame beyond the limit", "\x00\x65", nil, "byte 92: expected a frame of at most 100 bytes, got a size of 101"},
	{"a message beyond the limit", "\x01\x64" + zeros(100) + "\x00\x33", nil, "byte 194: expected a message with at most 50 more bytes, got a size of 51"},
	{"too many parts", "\x01\x00\x01\x00\x01\x00\x00\x00", nil, "byte 97: expected a message of at most 3 parts, got one more"},
	{"a command beyond the limit", "\x06\x00\x00\x00\x00\x00\x01\x00\x01", nil, "byte 92: expected a command of at most 65536 bytes, got a size of 65537"},
	{"a command without a name", "\x04\x01\x00", nil, `byte 93: expected the name of a command, got 1 bytes: "\x00"`},
	{"PING without a time to live", "\x04\x06\x04PING\x00", nil, "byte 98: expected a PING of a time to live and at most 16 bytes, got 1 bytes"},
	{"PING with a long context", "\x04\x18\x04PING\x00\x00" + zeros(17), nil, "byte 98: expected a PING of a time to live and at most 16 bytes, got 19 bytes"},
	{"ERROR", "\x00\x01a\x04\x0a\x05ERROR\x03bye", []string{"a"}, `refused by the peer, with the reason "bye"`},
	{
		"commands without end inside of a message", "\x01\x01a" + strings.Repeat("\x06\x00\x00\x00\x00\x00\x00\x80\x00\x01X"+zeros(0x7ffe), 3), nil,
		"expected at most 65536 bytes of commands between the parts of a message, got 98304",
	},
}

var lowLimits = zmtp.Limits{Frame: 100, Message: 150, Parts: 3}

func TestWrongTrafficIsAnErrorAndMessagesBeforeItArrive(t *testing.T) {
	for _, tt := range wrongTraffic {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range pieces {
				got, err := received(t, newScript(pub+tt.traffic, piece), zmtp.Options{Limits: lowLimits})
				require.ErrorContains(t, err, "ZMTP peer peer:1, traffic: ")
				require.ErrorContains(t, err, tt.err)
				require.Equal(t, tt.got, got)
			}
		})
	}
}

func TestAMessageAtItsLimitIsAccepted(t *testing.T) {
	got, err := received(t, newScript(pub+"\x01\x64"+zeros(100)+"\x01\x32"+zeros(50)+"\x00\x00", 0), zmtp.Options{Limits: lowLimits})
	require.ErrorIs(t, err, zmtp.ErrClosed)
	require.Equal(t, []string{zeros(100) + "|" + zeros(50) + "|"}, got)
}

func TestABrokenConnectionNamesItsFirstError(t *testing.T) {
	s, err := zmtp.Subscribe(t.Context(), newScript(pub+"\x08", 0), zmtp.Options{})
	require.NoError(t, err)
	nothing := func(zmtp.Message) error { return nil }
	require.ErrorContains(t, s.Receive(t.Context(), nothing), "reserved bits")
	err = s.Receive(t.Context(), nothing)
	require.ErrorContains(t, err, "the connection is unusable after an earlier error: byte 91: ")
	var broken *zmtp.BrokenError
	require.ErrorAs(t, err, &broken)
}

func TestAfterAnErrorOfItsOwnASubscriberContinues(t *testing.T) {
	s, err := zmtp.Subscribe(t.Context(), newScript(pub+"\x00\x01a\x00\x01b", 0), zmtp.Options{})
	require.NoError(t, err)
	require.Equal(t, "a", string(next(t, s)))
	require.Equal(t, "b", string(next(t, s)))
}

func TestAnAnnouncedSizeCostsNoMemory(t *testing.T) {
	announced := pub + "\x02\x00\x00\x00\x00\x02\x00\x00\x00" + zeros(200_000) // 32 MiB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := received(t, newScript(announced, 0), zmtp.Options{})
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "expected the rest of a frame")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(3<<20))
}

func TestALargeMessageCostsAFewTimesItsSize(t *testing.T) {
	const size = 10_500_000
	conn := newScript(pub+long(0, strings.Repeat("x", size)), 0)
	s, err := zmtp.Subscribe(t.Context(), conn, zmtp.Options{})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.ErrorIs(t, s.Receive(t.Context(), func(m zmtp.Message) error {
		require.Len(t, m[0], size)
		return errEnough
	}), errEnough)
	runtime.ReadMemStats(&after)
	// All buffers together, with freed ones.
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*size))
}

func TestReceivingAllocatesNothingForAMessage(t *testing.T) {
	const messages = 10_000
	traffic := pub + strings.Repeat("\x01\x03key"+long(0, strings.Repeat("x", 300)), messages)
	s, err := zmtp.Subscribe(t.Context(), newScript(traffic, 0), zmtp.Options{})
	require.NoError(t, err)
	got := 0
	allocations := testing.AllocsPerRun(1, func() {
		_ = s.Receive(t.Context(), func(zmtp.Message) error {
			if got++; got%(messages/2) == 0 {
				return errEnough
			}
			return nil
		})
	})
	require.Equal(t, messages, got)
	require.Less(t, allocations, 20.0) // of a call, not of a message
}
