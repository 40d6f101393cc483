// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit"
)

// tap forwards between viewers and a relay daemon, and records the bytes.
type tap struct {
	// address is the address for viewers.
	address string

	relay    string
	listener net.Listener
	group    sync.WaitGroup
	mu       sync.Mutex
	tapped   []*tappedConnection
	// held is the command of requests that are held back until freed is closed. waiting is their number.
	held    lttnglive.Command
	freed   chan struct{}
	waiting int
}

// tappedConnection contains the bytes of one connection.
type tappedConnection struct {
	viewer, relay     net.Conn
	requests, replies bytes.Buffer
}

// newTap listens for viewers of the relay daemon at the address, until the test ends.
func newTap(t *testing.T, relay string) *tap {
	t.Helper()
	tp := &tap{address: testkit.Address(t), relay: relay}
	var err error
	tp.listener, err = net.Listen("tcp", tp.address)
	require.NoError(t, err)
	tp.group.Add(1)
	go tp.accept()
	t.Cleanup(tp.close)
	return tp
}

func (tp *tap) accept() {
	defer tp.group.Done()
	for {
		viewer, err := tp.listener.Accept()
		if err != nil {
			return // closed
		}
		relay, err := net.Dial("tcp", tp.relay)
		if err != nil {
			_ = viewer.Close() // as the relay daemon would do
			continue
		}
		c := &tappedConnection{viewer: viewer, relay: relay}
		tp.mu.Lock()
		tp.tapped = append(tp.tapped, c)
		tp.mu.Unlock()
		tp.group.Add(2)
		go tp.copy(holding{tp, relay}, viewer, &c.requests)
		go tp.copy(viewer, relay, &c.replies)
	}
}

// copy forwards one direction, and closes the connection at its end.
func (tp *tap) copy(to, from net.Conn, kept *bytes.Buffer) {
	defer tp.group.Done()
	_, _ = io.Copy(io.MultiWriter(kept, to), from) // ends when one of them is closed
	_ = to.Close()
	_ = from.Close()
}

// hold holds back requests with a command until release.
func (tp *tap) hold(command lttnglive.Command) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.held, tp.freed = command, make(chan struct{})
}

func (tp *tap) release() {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if tp.freed != nil {
		close(tp.freed)
		tp.held, tp.freed = 0, nil
	}
}

// awaitHeld waits until a request is held back.
func (tp *tap) awaitHeld(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "a request is held back", func() (bool, string) {
		tp.mu.Lock()
		defer tp.mu.Unlock()
		return tp.waiting > 0, tp.held.String()
	})
}

// holding is a connection to the relay daemon. Viewers write one request at a time.
type holding struct {
	tap *tap
	net.Conn
}

func (h holding) Write(request []byte) (int, error) {
	h.tap.mu.Lock()
	freed := h.tap.freed
	if freed != nil && len(request) >= 12 && lttnglive.Command(binary.BigEndian.Uint32(request[8:])) == h.tap.held {
		h.tap.waiting++
	} else {
		freed = nil
	}
	h.tap.mu.Unlock()
	if freed != nil {
		<-freed
	}
	return h.Conn.Write(request)
}

// close ends all connections, and waits until all their bytes are recorded.
func (tp *tap) close() {
	tp.release()
	_ = tp.listener.Close()
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for _, c := range tp.tapped {
		_ = errors.Join(c.viewer.Close(), c.relay.Close())
	}
	tp.group.Wait()
}

// captures returns the bytes of the connections, in the order of their start. Call it after the last message.
func (tp *tap) captures(t *testing.T) (captures []*capture.Capture) {
	t.Helper()
	tp.close()
	for _, c := range tp.tapped {
		var file bytes.Buffer
		archive := zip.NewWriter(&file)
		for name, content := range map[string][]byte{
			"viewer-to-relay.bin": c.requests.Bytes(), "relay-to-viewer.bin": c.replies.Bytes(),
			// The times do not matter.
			"times.tsv": fmt.Appendf(nil, "0\tc2s\t0\t%d\n1\ts2c\t0\t%d\n", c.requests.Len(), c.replies.Len()),
		} {
			w, err := archive.Create(name)
			require.NoError(t, err)
			_, err = w.Write(content)
			require.NoError(t, err)
		}
		require.NoError(t, archive.Close())
		read, err := capture.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
		require.NoError(t, err)
		captures = append(captures, read)
	}
	return captures
}

// sentStream describes the packets that a relay daemon sent of a stream.
type sentStream struct {
	trace   uint64
	packets [][]byte
	// last is the index of the last packet.
	last   lttnglive.Index
	hungUp bool
}

// isCut reports whether the stream visibly ended without its last packet: the last sent packet was full, or there was
// none.
func (g *sentStream) isCut() bool {
	const leastEvent = 256 * 8
	return g.hungUp && (len(g.packets) == 0 || g.last.PacketSize-g.last.ContentSize < leastEvent)
}

// sentOn returns the streams that the relay daemon sent on a connection, and the number of events in their packets.
func sentOn(t *testing.T, c *capture.Capture) (streams map[uint64]*sentStream, events int) {
	t.Helper()
	streams = map[uint64]*sentStream{}
	metadata, traceOf := map[uint64]*ctf.Trace{}, map[uint64]uint64{}
	tell := func(told []lttnglive.Stream) {
		for _, s := range told {
			if s.Metadata {
				traceOf[s.ID], metadata[s.TraceID] = s.TraceID, ctf.NewTrace()
			} else {
				streams[s.ID] = &sentStream{trace: s.TraceID}
			}
		}
	}
	for _, e := range c.Exchanges {
		switch reply := e.Reply.(type) {
		case lttnglive.AttachSessionReply:
			tell(reply.Streams)
		case lttnglive.NewStreamsReply:
			tell(reply.Streams)
		case lttnglive.MetadataReply:
			require.NoError(t, metadata[traceOf[e.Request.(lttnglive.GetMetadataRequest).Stream]].Append(reply.Data))
		case lttnglive.Index:
			s := streams[e.Request.(lttnglive.GetNextIndexRequest).Stream]
			switch reply.Status {
			case lttnglive.IndexOK:
				s.last = reply
			case lttnglive.IndexHangUp:
				s.hungUp = true
			}
		case lttnglive.PacketReply:
			if s := streams[e.Request.(lttnglive.GetPacketRequest).Stream]; reply.Status == lttnglive.PacketOK {
				s.packets = append(s.packets, reply.Data)
			}
		}
	}
	for _, s := range streams {
		r := ctf.NewReader(metadata[s.trace])
		for _, packet := range s.packets {
			require.NoError(t, r.Begin(packet))
			for r.Next() {
				events++
			}
			require.NoError(t, r.Err())
		}
	}
	return streams, events
}
