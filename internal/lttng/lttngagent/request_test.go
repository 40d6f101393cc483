// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// readRequest reads a request that arrives byte by byte.
func readRequest(d lttngagent.Dialect, b []byte) (lttngagent.Request, error) {
	return d.ReadRequest(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(b))))
}

// wrongRequests are requests that end a real agent's thread, or make it read without end, and their errors.
var wrongRequests = []struct {
	name, bytes string
	dialect     lttngagent.Dialect
	err         string
}{
	{"unknown command", "0000000000000000 00000007 00000000", lttngagent.V2, "byte 8: expected a command of dialect 2.0, got 7"},
	{"command 0", "0000000000000000 00000000 00000000", lttngagent.V2, "byte 8: expected a command of dialect 2.0, got 0"},
	{"registration done in the RFC", "0000000000000000 0000000000000004 0000000000000000", lttngagent.RFC,
		"byte 8: expected a command of dialect rfc, got 4"},
	{"context on in the RFC", "0000000000000000 0000000000000005 0000000000000000", lttngagent.RFC,
		"byte 8: expected a command of dialect rfc, got 5"},
	{"context off in the RFC", "0000000000000000 0000000000000006 0000000000000000", lttngagent.RFC,
		"byte 8: expected a command of dialect rfc, got 6"},
	{"command of more than 32 bits", "0000000000000000 0000000100000001 0000000000000000", lttngagent.RFC,
		"byte 8: expected a command of dialect rfc, got 4294967295"},
	{"enable without a payload", "0000000000000000 00000002 00000000", lttngagent.V2, "byte 16: expected 4 bytes of a level, got 0"},
	{"enable with half a name", "0000000000000009 00000002 00000000 80000000 00000000 2a", lttngagent.V2,
		"byte 24: expected a name in 256 bytes, got 1"},
	{"enable with an unknown type of levels", "000000000000010c 00000002 00000000 80000000 00000003" + field("2a") + "00000000",
		lttngagent.V2, "byte 20: expected a type of levels from 0 to 2, got 3"},
	{"filter without a NUL", "000000000000010d 00000002 00000000 80000000 00000000" + field("2a") + "00000001 78",
		lttngagent.V2, "byte 284: expected a NUL at the end of a filter, got 0x78"},
	{"filter that is longer than the payload", "000000000000010d 00000002 00000000 80000000 00000000" + field("2a") + "ffffffff 78",
		lttngagent.V2, "byte 284: expected 4294967295 bytes of a filter, got 1"},
	{"filter with a NUL inside", "000000000000010f 00000002 00000000 80000000 00000000" + field("2a") + "00000003 780000",
		lttngagent.V2, "byte 280: expected a filter without a NUL, got \"x\\x00\""},
	{"disable without a payload", "0000000000000000 00000003 00000000", lttngagent.V2, "byte 16: expected 1 bytes of a name, got 0"},
	{"name that is not UTF-8", "0000000000000002 00000003 00000000 ff00", lttngagent.V2,
		"byte 16: expected the name of a logger in UTF-8, got \"\\xff\""},
	{"context without a name", "0000000000000006 00000005 00000000 00000002 7000", lttngagent.V2,
		"byte 22: expected 4 bytes of the size of the name of a context, got 0"},
	{"context with an empty name", "000000000000000a 00000005 00000000 00000002 7000 00000000", lttngagent.V2,
		"byte 16: expected a provider and a name of a context, got none"},
	{"payload that is too long", "7fffffffffffffff 00000001 00000000", lttngagent.V2,
		"byte 0: expected a payload of at most 131606 bytes, got 9223372036854775807"},
}

func TestInvalidCommandsAreErrors(t *testing.T) {
	for _, c := range wrongRequests {
		q, err := readRequest(c.dialect, unhex(t, c.bytes))
		if err == nil {
			_, err = q.Command(c.dialect)
		}
		var wrong *lttngagent.ProtocolError
		require.ErrorAs(t, err, &wrong, c.name)
		assert.EqualError(t, err, c.err, c.name)
	}
}

func TestAnIncompleteRequestIsAnError(t *testing.T) {
	_, err := readRequest(lttngagent.V2, nil)
	require.ErrorIs(t, err, io.EOF)
	assert.EqualError(t, err, "byte 0: expected 16 bytes of the header of a command, got 0: EOF")
	_, err = readRequest(lttngagent.V2, unhex(t, "0000"))
	assert.EqualError(t, err, "byte 0: expected 16 bytes of the header of a command, got 2: unexpected EOF")
	_, err = readRequest(lttngagent.V2, unhex(t, "0000000000002000 00000003 00000000"+strings.Repeat("00", 5000)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.EqualError(t, err, "byte 16: expected 8192 bytes of the payload of a command, got 5000: unexpected EOF")
}
