// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// readList reads a reply that arrives byte by byte, and returns the number of bytes after it.
func readList(a lttngagent.Agent, b []byte, limits lttngagent.Limits) (lttngagent.ListReply, int, error) {
	unread := bytes.NewReader(b)
	from := bufio.NewReader(iotest.OneByteReader(unread))
	reply, err := a.ReadList(from, limits)
	return reply, unread.Len() + from.Buffered(), err
}

var listReplies = []struct {
	name  string
	agent lttngagent.Agent
	bytes string
	reply lttngagent.ListReply
}{
	{"no loggers", v2, "00000001 00000000 00000000", lttngagent.ListReply{Code: lttngagent.Success}},
	{"two loggers", v2, "00000001 00000006 00000002 612e6200 6300",
		lttngagent.ListReply{Code: lttngagent.Success, Loggers: []string{"a.b", "c"}}},
	{"an empty name", v2, "00000001 00000003 00000002 00 6100",
		lttngagent.ListReply{Code: lttngagent.Success, Loggers: []string{"", "a"}}},
	{"a name in UTF-8", v2, "00000001 00000003 00000001 c3a900",
		lttngagent.ListReply{Code: lttngagent.Success, Loggers: []string{"é"}}},
	{"refused", v2, "00000002", lttngagent.ListReply{Code: lttngagent.Invalid}},
	{"the empty reply of Java's agent", v2, "00000000", lttngagent.ListReply{}},
	{"no loggers, by the RFC", rfc, "0000000000000000 00000001", lttngagent.ListReply{Code: lttngagent.Success}},
	{"two loggers, by the RFC", rfc, "0000000000000002 612e6200 6300 00000001",
		lttngagent.ListReply{Code: lttngagent.Success, Loggers: []string{"a.b", "c"}}},
	{"refused, by the RFC", rfc, "0000000000000000 00000002", lttngagent.ListReply{Code: lttngagent.Invalid}},
}

func TestRepliesToListHaveTheBytesOfTheDocument(t *testing.T) {
	for _, c := range listReplies {
		b := unhex(t, c.bytes)
		reply, left, err := readList(c.agent, append(b, "after"...), lttngagent.Limits{})
		require.NoError(t, err, c.name)
		assert.Equal(t, c.reply, reply, c.name)
		assert.Equal(t, len("after"), left, c.name)
		assert.Equal(t, append([]byte("before"), b...), reply.AppendTo([]byte("before"), c.agent.Dialect), c.name)
	}
}

// wrongLists are invalid replies to List, or replies beyond 3 names in 10 bytes, and their errors.
var wrongLists = []struct {
	name  string
	agent lttngagent.Agent
	bytes string
	err   string
}{
	{"more bytes than allowed", v2, "00000001 0000000b 00000001", "byte 4: expected at most 10 bytes of names, got 11"},
	{"more bytes than there are", v2, "00000001 ffffffff ffffffff", "byte 4: expected at most 10 bytes of names, got 4294967295"},
	{"more names than allowed", v2, "00000001 0000000a 00000004", "byte 8: expected at most 3 names in 10 bytes, got 4"},
	{"more names than bytes", v2, "00000001 00000002 00000003", "byte 8: expected at most 2 names in 2 bytes, got 3"},
	{"fewer names than announced", v2, "00000001 00000004 00000002 61626300", "byte 12: expected 2 names, each with a NUL, in 4 bytes, got 1 NULs"},
	{"more names than announced", v2, "00000001 00000004 00000001 61006200", "byte 12: expected 1 names, each with a NUL, in 4 bytes, got 2 NULs"},
	{"bytes but no names", v2, "00000001 00000002 00000000 6162", "byte 13: expected a NUL at the end of the last name, got 0x62"},
	{"a last name without a NUL", v2, "00000001 00000003 00000001 610062", "byte 14: expected a NUL at the end of the last name, got 0x62"},
	{"a name that is not UTF-8", v2, "00000001 00000005 00000002 6100 62ff00", `byte 14: expected a name in UTF-8, got "b\xff"`},
	{"more names than allowed, by the RFC", rfc, "0000000000000004 61006200 63006400 00000001", "byte 0: expected at most 3 names, got 4"},
	{"far more names than allowed, by the RFC", rfc, "ffffffffffffffff", "byte 0: expected at most 3 names, got 18446744073709551615"},
	{"names without an end, by the RFC", rfc, "0000000000000001" + strings.Repeat("61", 11), "byte 18: expected at most 10 bytes of names, got more"},
	{"a name that is not UTF-8, by the RFC", rfc, "0000000000000002 6100 ff00 00000001", `byte 10: expected a name in UTF-8, got "\xff"`},
}

func TestInvalidRepliesToListAreErrors(t *testing.T) {
	for _, c := range wrongLists {
		reply, _, err := readList(c.agent, unhex(t, c.bytes), lttngagent.Limits{Names: 3, NameBytes: 10})
		var wrong *lttngagent.ProtocolError
		require.ErrorAs(t, err, &wrong, c.name)
		assert.EqualError(t, err, c.err, c.name)
		assert.Empty(t, reply, c.name)
	}
}

func TestARealListIsWithinTheDefaultLimits(t *testing.T) {
	reply := lttngagent.ListReply{Code: lttngagent.Success}
	for range 65536 {
		reply.Loggers = append(reply.Loggers, strings.Repeat("x", 63))
	}
	for _, agent := range []lttngagent.Agent{v2, rfc} {
		got, err := agent.ReadList(bufio.NewReader(bytes.NewReader(reply.AppendTo(nil, agent.Dialect))), lttngagent.Limits{})
		require.NoError(t, err)
		require.Equal(t, reply, got)
		tooMany := append(slices.Clone(reply.Loggers[:65535]), "", "")
		tooLong := append(slices.Clone(reply.Loggers[:65535]), strings.Repeat("x", 64))
		for _, loggers := range [][]string{tooMany, tooLong} {
			b := lttngagent.ListReply{Code: lttngagent.Success, Loggers: loggers}.AppendTo(nil, agent.Dialect)
			_, err = agent.ReadList(bufio.NewReader(bytes.NewReader(b)), lttngagent.Limits{})
			var wrong *lttngagent.ProtocolError
			require.ErrorAs(t, err, &wrong)
		}
	}
}

func TestAnIncompleteReplyIsAnError(t *testing.T) {
	for _, c := range listReplies {
		whole := unhex(t, c.bytes)
		for n := range whole {
			_, _, err := readList(c.agent, whole[:n], lttngagent.Limits{})
			want := io.ErrUnexpectedEOF
			if n == 0 {
				want = io.EOF
			}
			require.ErrorIs(t, err, want, "%s: %d of %d bytes", c.name, n, len(whole))
		}
	}
}

func TestErrorsOfTheConnectionAreWrapped(t *testing.T) {
	broken := errors.New("broken")
	for _, b := range []string{"", "000000", "00000001", "00000001 00000006 00000002", "00000001 00000006 00000002 612e"} {
		from := bufio.NewReader(io.MultiReader(bytes.NewReader(unhex(t, b)), iotest.ErrReader(broken)))
		_, err := v2.ReadList(from, lttngagent.Limits{})
		require.ErrorIs(t, err, broken)
	}
	_, _, err := readList(v2, unhex(t, "00000001 00000006 00000002 612e"), lttngagent.Limits{})
	assert.EqualError(t, err, "byte 12: expected 6 bytes of names, got 2: unexpected EOF")
}

// TestMemoryGrowsAsBytesArrive: an agent that only announces many bytes uses no memory.
func TestMemoryGrowsAsBytesArrive(t *testing.T) {
	const most = math.MaxInt32
	announced := binary.BigEndian.AppendUint32(unhex(t, "00000001"), most)
	announced = append(binary.BigEndian.AppendUint32(announced, most), "few"...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := readList(v2, announced, lttngagent.Limits{Names: most, NameBytes: most})
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100_000))
}

func TestRepliesToOtherCommandsAreCodes(t *testing.T) {
	for bytes, want := range map[string]struct {
		code    lttngagent.Code
		meaning string
	}{
		"00000001": {lttngagent.Success, "success"},
		"00000002": {lttngagent.Invalid, "invalid command"},
		"00000003": {lttngagent.UnknownName, "unknown name"},
		"00000000": {0, "unknown code 0"},
		"ffffffff": {math.MaxUint32, "unknown code 4294967295"},
	} {
		for _, agent := range []lttngagent.Agent{v2, rfc} {
			code, err := agent.ReadCode(bufio.NewReader(strings.NewReader(string(unhex(t, bytes)))))
			require.NoError(t, err)
			assert.Equal(t, want.code, code)
			assert.Equal(t, want.meaning, code.String())
			assert.Equal(t, unhex(t, bytes), code.AppendTo(nil))
		}
	}
	_, err := v2.ReadCode(bufio.NewReader(strings.NewReader("\x00")))
	assert.EqualError(t, err, "byte 0: expected 4 bytes of a return code, got 1: unexpected EOF")
}
