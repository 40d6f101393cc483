// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// unhex returns the bytes of hexadecimal digits, which may have blanks between them.
func unhex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	require.NoError(t, err)
	return b
}

var requestCases = []struct {
	request lttnglive.Request
	command lttnglive.Command
	name    string
	bytes   string
}{
	{
		lttnglive.ConnectRequest{ViewerSession: 1<<64 - 1, Version: lttnglive.Version{Major: 2, Minor: 15}, Type: lttnglive.ConnectionCommand},
		lttnglive.CommandConnect, "connect",
		"0000000000000014 00000001 00000000 FFFFFFFFFFFFFFFF 00000002 0000000F 00000001",
	},
	{
		lttnglive.ListSessionsRequest{},
		lttnglive.CommandListSessions, "list sessions",
		"0000000000000000 00000002 00000000",
	},
	{
		lttnglive.AttachSessionRequest{Session: 0x0102030405060708, Seek: lttnglive.SeekLast},
		lttnglive.CommandAttachSession, "attach session",
		"0000000000000014 00000003 00000000 0102030405060708 0000000000000000 00000002",
	},
	{
		lttnglive.GetNextIndexRequest{Stream: 5},
		lttnglive.CommandGetNextIndex, "get next index",
		"0000000000000008 00000004 00000000 0000000000000005",
	},
	{
		lttnglive.GetPacketRequest{Stream: 5, Offset: 0x1000, Length: 0x8000},
		lttnglive.CommandGetPacket, "get packet",
		"0000000000000014 00000005 00000000 0000000000000005 0000000000001000 00008000",
	},
	{
		lttnglive.GetMetadataRequest{Stream: 6},
		lttnglive.CommandGetMetadata, "get metadata",
		"0000000000000008 00000006 00000000 0000000000000006",
	},
	{
		lttnglive.GetNewStreamsRequest{Session: 2},
		lttnglive.CommandGetNewStreams, "get new streams",
		"0000000000000008 00000007 00000000 0000000000000002",
	},
	{
		lttnglive.CreateSessionRequest{},
		lttnglive.CommandCreateSession, "create session",
		"0000000000000000 00000008 00000000",
	},
	{
		lttnglive.DetachSessionRequest{Session: 2},
		lttnglive.CommandDetachSession, "detach session",
		"0000000000000008 00000009 00000000 0000000000000002",
	},
}

func TestRequestsHaveTheBytesOfTheProtocol(t *testing.T) {
	for _, c := range requestCases {
		t.Run(c.name, func(t *testing.T) {
			b := unhex(t, c.bytes)
			assert.Equal(t, b, lttnglive.AppendRequest(nil, c.request))
			assert.Equal(t, c.command, c.request.Command())
			assert.Equal(t, c.name, c.command.String())
			for n := range b {
				request, size, err := lttnglive.DecodeRequest(b[:n])
				require.NoError(t, err)
				assert.Nil(t, request, "of %d bytes", n)
				assert.Zero(t, size, "of %d bytes", n)
			}
			request, size, err := lttnglive.DecodeRequest(append(b, "the next one"...))
			require.NoError(t, err)
			assert.Equal(t, c.request, request)
			assert.Equal(t, len(b), size)
		})
	}
}

func TestTheSizeAndVersionInARequestsHeaderAreIgnored(t *testing.T) {
	request, size, err := lttnglive.DecodeRequest(unhex(t, "FFFFFFFFFFFFFFFF 00000004 00000007 0000000000000005"))
	require.NoError(t, err)
	assert.Equal(t, lttnglive.GetNextIndexRequest{Stream: 5}, request)
	assert.Equal(t, 24, size)
}

func TestUnknownCommands(t *testing.T) {
	for _, command := range []string{"00000000", "0000000A", "FFFFFFFF"} {
		request, size, err := lttnglive.DecodeRequest(unhex(t, "0000000000000000"+command+"00000000"))
		var unknown *lttnglive.UnknownCommandError
		require.ErrorAs(t, err, &unknown)
		assert.Contains(t, err.Error(), "byte 8: expected a command from 1 to 9, got ")
		assert.False(t, unknown.Command.Known())
		assert.Nil(t, request)
		assert.Zero(t, size)
	}
	assert.Equal(t, "command 10", lttnglive.Command(10).String())
}
