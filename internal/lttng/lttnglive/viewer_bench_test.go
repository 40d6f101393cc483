// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// BenchmarkReadPackets reads an index and its packet of 64 KiB, without a network.
func BenchmarkReadPackets(b *testing.B) {
	const size = 64 << 10
	begin := slices.Concat(
		lttnglive.ConnectReply{Version: lttnglive.Version{Major: 2, Minor: 13}}.AppendTo(nil, 0),
		lttnglive.CreateSessionReply{Status: lttnglive.CreateSessionOK}.AppendTo(nil, 13),
		lttnglive.AttachSessionReply{Status: lttnglive.AttachOK}.AppendTo(nil, 13),
	)
	replies := lttnglive.PacketReply{Status: lttnglive.PacketOK, Data: make([]byte, size)}.AppendTo(
		lttnglive.Index{Status: lttnglive.IndexOK, PacketSize: 8 * size, ContentSize: 8 * size}.AppendTo(nil, 13), 13)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	conn := &byteConn{}
	conn.Reset(begin)
	v, err := lttnglive.Connect(ctx, conn, lttnglive.ViewerOptions{})
	require.NoError(b, err)
	a, _, err := v.Attach(ctx, 1, lttnglive.SeekBeginning)
	require.NoError(b, err)
	var packet lttnglive.PacketReply
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		conn.Reset(replies)
		index, err := a.NextIndex(ctx, 5)
		if err != nil {
			b.Fatal(err)
		}
		if packet, err = a.Packet(ctx, 5, index.Offset, index.ContentLength(), packet.Data); err != nil {
			b.Fatal(err)
		}
	}
}
