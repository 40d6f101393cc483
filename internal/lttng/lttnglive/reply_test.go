// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// field returns the digits of a text in a field of size bytes.
func field(text string, size int) string {
	return hex.EncodeToString(append([]byte(text), make([]byte, size-len(text))...))
}

// streamDigits returns the entry of a stream.
func streamDigits(id int, metadata bool, path, channel string) string {
	flag := 0
	if metadata {
		flag = 1
	}
	return fmt.Sprintf("%016X 0000000000000002 %08X %s %s", id, flag, field(path, 4096), field(channel, 255))
}

var (
	dataStream     = lttnglive.Stream{ID: 5, TraceID: 2, Path: "ust/uid/0/64-bit", Channel: "ch_1"}
	metadataStream = lttnglive.Stream{ID: 6, TraceID: 2, Metadata: true, Path: "ust/uid/0/64-bit", Channel: "metadata"}
)

var replyCases = []struct {
	name    string
	request lttnglive.Request
	minor   uint32
	reply   lttnglive.Reply
	bytes   string
}{
	{
		"connect", lttnglive.ConnectRequest{}, 0,
		lttnglive.ConnectReply{ViewerSession: 3, Version: lttnglive.Version{Major: 2, Minor: 13}},
		"0000000000000003 00000002 0000000D 00000000",
	},
	{
		"no sessions", lttnglive.ListSessionsRequest{}, 4,
		lttnglive.ListSessionsReply{},
		"00000000",
	},
	{
		"sessions of minor versions below 15", lttnglive.ListSessionsRequest{}, 14,
		lttnglive.ListSessionsReply{Sessions: []lttnglive.Session{
			{ID: 2, LiveTimer: 200 * time.Millisecond, Clients: 1, Streams: 3, Host: "vm", Name: "cyg1"},
			{ID: 3, LiveTimer: time.Microsecond, Host: strings.Repeat("h", 63), Name: strings.Repeat("n", 254)},
		}},
		"00000002" +
			"0000000000000002 00030D40 00000001 00000003" + field("vm", 64) + field("cyg1", 255) +
			"0000000000000003 00000001 00000000 00000000" + field(strings.Repeat("h", 63), 64) + field(strings.Repeat("n", 254), 255),
	},
	{
		"sessions of minor version 15", lttnglive.ListSessionsRequest{}, 15,
		lttnglive.ListSessionsReply{Sessions: []lttnglive.Session{
			{ID: 2, LiveTimer: 200 * time.Millisecond, Clients: 1, Streams: 3, Host: "vm", Name: "cyg1", Format: lttnglive.TraceFormatCTF2},
			{ID: 3, LiveTimer: time.Second},
		}},
		"00000002" +
			"0000000000000002 00030D40 00000001 00000003 00000002 00000004 00000001" + hex.EncodeToString([]byte("vmcyg1")) +
			"0000000000000003 000F4240 00000000 00000000 00000000 00000000 00000000",
	},
	{
		"attached", lttnglive.AttachSessionRequest{}, 4,
		lttnglive.AttachSessionReply{Status: lttnglive.AttachOK, Streams: []lttnglive.Stream{metadataStream, dataStream}},
		"00000001 00000002" + streamDigits(6, true, "ust/uid/0/64-bit", "metadata") + streamDigits(5, false, "ust/uid/0/64-bit", "ch_1"),
	},
	{
		"another is attached", lttnglive.AttachSessionRequest{}, 4,
		lttnglive.AttachSessionReply{Status: lttnglive.AttachAlready},
		"00000002 00000000",
	},
	{
		"a packet's index", lttnglive.GetNextIndexRequest{}, 4,
		lttnglive.Index{
			Offset: 0x1000, PacketSize: 0x8000, ContentSize: 0x4480, TimestampBegin: 7, TimestampEnd: 8, EventsDiscarded: 9, StreamClass: 1,
			Status: lttnglive.IndexOK, Flags: lttnglive.FlagNewMetadata | lttnglive.FlagNewStreams,
		},
		"0000000000001000 0000000000008000 0000000000004480 0000000000000007 0000000000000008 0000000000000009 0000000000000001 00000001 00000003",
	},
	{
		"an inactive stream", lttnglive.GetNextIndexRequest{}, 4,
		lttnglive.Index{TimestampEnd: 8, StreamClass: 1, Status: lttnglive.IndexInactive},
		"0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000008 0000000000000000 0000000000000001 00000005 00000000",
	},
	{
		"hang-up", lttnglive.GetNextIndexRequest{}, 4,
		lttnglive.Index{Status: lttnglive.IndexHangUp},
		strings.Repeat("00", 56) + "00000003 00000000",
	},
	{
		"a packet", lttnglive.GetPacketRequest{Length: 4}, 4,
		lttnglive.PacketReply{Status: lttnglive.PacketOK, Data: []byte{0xC1, 0xFC, 0x1F, 0xC1}},
		"00000001 00000004 00000000 C1FC1FC1",
	},
	{
		"a packet that waits for metadata", lttnglive.GetPacketRequest{Length: 4}, 4,
		lttnglive.PacketReply{Status: lttnglive.PacketError, Flags: lttnglive.FlagNewMetadata, Data: []byte{}},
		"00000003 00000000 00000001",
	},
	{
		"metadata", lttnglive.GetMetadataRequest{}, 4,
		lttnglive.MetadataReply{Status: lttnglive.MetadataOK, Data: []byte("trace")},
		"0000000000000005 00000001" + hex.EncodeToString([]byte("trace")),
	},
	{
		"no new metadata", lttnglive.GetMetadataRequest{}, 4,
		lttnglive.MetadataReply{Status: lttnglive.MetadataNone, Data: []byte{}},
		"0000000000000000 00000002",
	},
	{
		"new streams", lttnglive.GetNewStreamsRequest{}, 4,
		lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsOK, Streams: []lttnglive.Stream{dataStream}},
		"00000001 00000001" + streamDigits(5, false, "ust/uid/0/64-bit", "ch_1"),
	},
	{
		"session closed", lttnglive.GetNewStreamsRequest{}, 4,
		lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsHangUp},
		"00000004 00000000",
	},
	{
		"create session", lttnglive.CreateSessionRequest{}, 4,
		lttnglive.CreateSessionReply{Status: lttnglive.CreateSessionOK},
		"00000001",
	},
	{
		"detach session", lttnglive.DetachSessionRequest{}, 4,
		lttnglive.DetachSessionReply{Status: lttnglive.DetachUnknown},
		"00000002",
	},
}

func TestRepliesHaveTheBytesOfTheProtocol(t *testing.T) {
	for _, c := range replyCases {
		t.Run(c.name, func(t *testing.T) {
			b := unhex(t, c.bytes)
			assert.Equal(t, b, c.reply.AppendTo(nil, c.minor))
			for n := range b {
				reply, size, err := lttnglive.DecodeReply(c.request, c.minor, lttnglive.Limits{}, b[:n])
				require.NoError(t, err, "of %d bytes", n)
				require.Nil(t, reply, "of %d bytes", n)
				require.Zero(t, size, "of %d bytes", n)
			}
			reply, size, err := lttnglive.DecodeReply(c.request, c.minor, lttnglive.Limits{}, append(b, "the next reply"...))
			require.NoError(t, err)
			assert.Equal(t, c.reply, reply)
			assert.Equal(t, len(b), size)
		})
	}
}

// wrongReplies are replies that violate the protocol or wrongLimits.
var (
	wrongLimits  = lttnglive.Limits{Sessions: 2, Streams: 3, Packet: 4096, Metadata: 100}
	wrongReplies = []struct {
		name    string
		request lttnglive.Request
		minor   uint32
		bytes   string
		err     string
	}{
		{
			"another major version", lttnglive.ConnectRequest{}, 0,
			"0000000000000003 00000003 0000000D 00000000",
			"byte 8: expected version 2.4 or a later 2, got 3.13",
		},
		{
			"a version before live reading", lttnglive.ConnectRequest{}, 0,
			"0000000000000003 00000002 00000003 00000000",
			"byte 8: expected version 2.4 or a later 2, got 2.3",
		},
		{
			"too many sessions", lttnglive.ListSessionsRequest{}, 4,
			"00000003",
			"byte 0: expected at most 2 sessions, got 3",
		},
		{
			"a host without end", lttnglive.ListSessionsRequest{}, 4,
			"00000001 0000000000000002 00030D40 00000001 00000003" + strings.Repeat("41", 64) + field("n", 255),
			"byte 24: expected the name of a host that ends with a NUL within 64 bytes, got none",
		},
		{
			"a second session's name without end", lttnglive.ListSessionsRequest{}, 4,
			"00000002 0000000000000002 00030D40 00000001 00000003" + field("h", 64) + field("n", 255) +
				"0000000000000002 00030D40 00000001 00000003" + field("h", 64) + strings.Repeat("41", 255),
			"byte 427: expected the name of a session that ends with a NUL within 255 bytes, got none",
		},
		{
			"a host of 4 GiB", lttnglive.ListSessionsRequest{}, 15,
			"00000001 0000000000000002 00030D40 00000001 00000003 FFFFFFFF 00000004 00000000",
			"byte 24: expected at most 4096 bytes in the name of a host, got 4294967295",
		},
		{
			"a session's name of 4097 bytes", lttnglive.ListSessionsRequest{}, 15,
			"00000001 0000000000000002 00030D40 00000001 00000003 00000001 00001001 00000000",
			"byte 28: expected at most 4096 bytes in the name of a session, got 4097",
		},
		{
			"an unknown attach status", lttnglive.AttachSessionRequest{}, 4,
			"00000007 00000000",
			"byte 0: expected a status of attach session from 1 to 6, got 7",
		},
		{
			"too many streams", lttnglive.AttachSessionRequest{}, 4,
			"00000001 00000004",
			"byte 4: expected at most 3 streams with status OK, got 4",
		},
		{
			"streams beside an error", lttnglive.AttachSessionRequest{}, 4,
			"00000003 00000001",
			"byte 4: expected at most 0 streams with status session unknown, got 1",
		},
		{
			"a metadata flag of 2", lttnglive.AttachSessionRequest{}, 4,
			"00000001 00000001 0000000000000005 0000000000000002 00000002" + field("p", 4096) + field("c", 255),
			"byte 24: expected 0 or 1 as a stream's metadata flag, got 2",
		},
		{
			"a path without end", lttnglive.GetNewStreamsRequest{}, 4,
			"00000001 00000001 0000000000000005 0000000000000002 00000000" + strings.Repeat("41", 4096) + field("c", 255),
			"byte 28: expected the path of a stream that ends with a NUL within 4096 bytes, got none",
		},
		{
			"a channel without end", lttnglive.GetNewStreamsRequest{}, 4,
			"00000001 00000001 0000000000000005 0000000000000002 00000000" + field("p", 4096) + strings.Repeat("41", 255),
			"byte 4124: expected the channel of a stream that ends with a NUL within 255 bytes, got none",
		},
		{
			"an index status of 0", lttnglive.GetNextIndexRequest{}, 4,
			strings.Repeat("00", 64),
			"byte 56: expected a status of get next index from 1 to 6, got 0",
		},
		{
			"an empty packet", lttnglive.GetNextIndexRequest{}, 4,
			strings.Repeat("00", 56) + "00000001 00000000",
			"byte 8: expected a packet of whole bytes, got 0 bits",
		},
		{
			"a packet of 31 bits", lttnglive.GetNextIndexRequest{}, 4,
			"0000000000000000 000000000000001F" + strings.Repeat("00", 40) + "00000001 00000000",
			"byte 8: expected a packet of whole bytes, got 31 bits",
		},
		{
			"a packet beyond the limit", lttnglive.GetNextIndexRequest{}, 4,
			"0000000000000000 0000000000008008" + strings.Repeat("00", 40) + "00000001 00000000",
			"byte 8: expected a packet of at most 4096 bytes, got 4097",
		},
		{
			"more content than packet", lttnglive.GetNextIndexRequest{}, 4,
			"0000000000000000 0000000000000040 0000000000000041" + strings.Repeat("00", 32) + "00000001 00000000",
			"byte 16: expected content within its packet of 64 bits, got 65 bits",
		},
		{
			"a packet that ends beyond 2^64", lttnglive.GetNextIndexRequest{}, 4,
			"FFFFFFFFFFFFFFFF 0000000000000040 0000000000000040" + strings.Repeat("00", 32) + "00000001 00000000",
			"byte 0: expected a packet that ends below 2^64, got offset 18446744073709551615",
		},
		{
			"fewer bytes than asked for", lttnglive.GetPacketRequest{Length: 5}, 4,
			"00000001 00000004 00000000 C1FC1FC1",
			"byte 4: expected 5 bytes of a packet with status OK, got 4",
		},
		{
			"4 GiB instead of a packet", lttnglive.GetPacketRequest{Length: 5}, 4,
			"00000001 FFFFFFFF 00000000",
			"byte 4: expected 5 bytes of a packet with status OK, got 4294967295",
		},
		{
			"bytes beside a retry", lttnglive.GetPacketRequest{Length: 5}, 4,
			"00000002 00000005 00000000",
			"byte 4: expected 0 bytes of a packet with status retry, got 5",
		},
		{
			"an unknown packet status", lttnglive.GetPacketRequest{Length: 5}, 4,
			"00000005 00000000 00000000",
			"byte 0: expected a status of get packet from 1 to 4, got 5",
		},
		{
			"metadata of 2^64 bytes", lttnglive.GetMetadataRequest{}, 4,
			"FFFFFFFFFFFFFFFF 00000001",
			"byte 0: expected at most 100 bytes of metadata with status OK, got 18446744073709551615",
		},
		{
			"metadata when there is none", lttnglive.GetMetadataRequest{}, 4,
			"0000000000000001 00000002",
			"byte 0: expected at most 0 bytes of metadata with status nothing new, got 1",
		},
		{
			"an unknown metadata status", lttnglive.GetMetadataRequest{}, 4,
			"0000000000000001 00000004",
			"byte 8: expected a status of get metadata from 1 to 3, got 4",
		},
		{
			"a relay daemon that does not know the command", lttnglive.DetachSessionRequest{}, 4,
			"0000000B",
			"byte 0: expected a status of detach session from 1 to 3, got 11 (the relay daemon does not know the command)",
		},
		{
			"an unknown create status", lttnglive.CreateSessionRequest{}, 4,
			"00000003",
			"byte 0: expected a status of create session from 1 to 2, got 3",
		},
	}
)

func TestWrongRepliesAreRefused(t *testing.T) {
	for _, c := range wrongReplies {
		t.Run(c.name, func(t *testing.T) {
			reply, size, err := lttnglive.DecodeReply(c.request, c.minor, wrongLimits, unhex(t, c.bytes))
			var wrong *lttnglive.ProtocolError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, c.err, err.Error())
			assert.Nil(t, reply)
			assert.Zero(t, size)
		})
	}
}

func TestNamesThatAreTooLongAreTruncated(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for minor, want := range map[uint32][2]int{4: {63, 254}, 15: {4096, 4096}} {
		b := lttnglive.ListSessionsReply{Sessions: []lttnglive.Session{{Host: long, Name: long}}}.AppendTo(nil, minor)
		reply, _, err := lttnglive.DecodeReply(lttnglive.ListSessionsRequest{}, minor, lttnglive.Limits{}, b)
		require.NoError(t, err)
		s := reply.(lttnglive.ListSessionsReply).Sessions[0]
		assert.Equal(t, want, [2]int{len(s.Host), len(s.Name)}, "minor version %d", minor)
	}
	b := lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsOK, Streams: []lttnglive.Stream{{Path: long, Channel: long}}}.AppendTo(nil, 4)
	reply, _, err := lttnglive.DecodeReply(lttnglive.GetNewStreamsRequest{}, 4, lttnglive.Limits{}, b)
	require.NoError(t, err)
	s := reply.(lttnglive.NewStreamsReply).Streams[0]
	assert.Equal(t, [2]int{4095, 254}, [2]int{len(s.Path), len(s.Channel)})
}

func TestLengthsOfAPacket(t *testing.T) {
	for content, want := range map[uint64]uint64{0: 0, 1: 1, 8: 1, 9: 2, 4096: 512, 1<<64 - 1: 1 << 61} {
		assert.Equal(t, want, lttnglive.Index{ContentSize: content}.ContentLength(), "of %d bits", content)
	}
	assert.Equal(t, uint64(4096), lttnglive.Index{PacketSize: 32768}.PacketLength())
}

func TestStatusesAndFlagsHaveNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"another viewer is attached": lttnglive.AttachAlready,
		"no viewer session":          lttnglive.AttachNoSession,
		"hang-up":                    lttnglive.IndexHangUp,
		"end":                        lttnglive.IndexEnd,
		"error":                      lttnglive.PacketError,
		"retry":                      lttnglive.PacketRetry,
		"nothing new":                lttnglive.MetadataNone,
		"session closed":             lttnglive.NewStreamsHangUp,
		"OK":                         lttnglive.CreateSessionOK,
		"session unknown":            lttnglive.DetachUnknown,
		"last":                       lttnglive.SeekLast,
		"status 3":                   lttnglive.Seek(3),
		"status 0":                   lttnglive.IndexStatus(0),
		"none":                       lttnglive.Flags(0),
		"new metadata, new streams":  lttnglive.FlagNewMetadata | lttnglive.FlagNewStreams,
		"new streams, 0x80000000":    lttnglive.FlagNewStreams | 1<<31,
		"CTF 1.8":                    lttnglive.TraceFormatCTF1,
		"CTF 2":                      lttnglive.TraceFormatCTF2,
		"trace format 2":             lttnglive.TraceFormat(2),
		"2.15":                       lttnglive.Version{Major: 2, Minor: 15},
	} {
		assert.Equal(t, want, got.String())
	}
}

// be32 returns the bytes of a number.
func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
