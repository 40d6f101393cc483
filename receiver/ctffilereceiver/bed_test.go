// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit/storagetest"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
)

// bed is a receiver with its pipelines and its log.
type bed struct {
	*receivertestbed.Bed
	receiver *fileReceiver
	// common is shared by receivers of one test.
	common *common
}

// unstartedBed returns a receiver of the traces below a directory.
func unstartedBed(t testing.TB, dir string, options ...func(*bed, *Config)) *bed {
	t.Helper()
	b := &bed{Bed: receivertestbed.New(t, metadata.Type), common: new(common)}
	config := createDefaultConfig()
	config.Include = []string{dir}
	config.Batch.MaxDelay = 20 * time.Millisecond
	config.PollInterval = 10 * time.Millisecond
	config.Reconnect = receiverkit.RetryConfig{InitialInterval: 5 * time.Millisecond, MaxInterval: 50 * time.Millisecond}
	config.Retry = receiverkit.RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	config.SymbolPaths = nil
	for _, o := range options {
		o(b, config)
	}
	require.NoError(t, config.Validate())
	r, err := newReceiver(b.Settings, config, b.common)
	require.NoError(t, err)
	b.receiver = r.Protocol.(*fileReceiver)
	b.Use(r)
	return b
}

// newBed returns a started receiver.
func newBed(t testing.TB, dir string, options ...func(*bed, *Config)) *bed {
	t.Helper()
	b := unstartedBed(t, dir, options...)
	b.Start()
	return b
}

// notAll is the line of an end without some traces.
const notAll = "The end is reached, but not all traces were read: earlier lines have the reasons"

// readAll returns a receiver that has read all traces below a directory.
func readAll(t testing.TB, dir string, options ...func(*bed, *Config)) *bed {
	t.Helper()
	b := newBed(t, dir, options...)
	b.Await("the end", func() bool { return b.Lines("All traces are read")+b.Lines(notAll) > 0 })
	b.Shutdown()
	return b
}

// watching is an option: the receiver watches the directory. A trace is quiet after delay, and ends after the time end.
func watching(delay, end time.Duration) func(*bed, *Config) {
	return func(_ *bed, c *Config) { c.Mode, c.MaxDelay, c.EndAfter = ModeWatch, delay, end }
}

// write writes a trace into a directory: its metadata, and the packets of each stream.
func write(t testing.TB, dir string, s *synthetic.Session) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	writeFile(t, filepath.Join(dir, "metadata"), s.Metadata())
	for i, stream := range s.Streams {
		var data []byte
		for j := range stream.Packets {
			data = append(data, packetBytes(s, i, j)...)
		}
		writeFile(t, filepath.Join(dir, fmt.Sprintf("channel0_%d", i)), data)
	}
}

// packetBytes returns the bytes of a packet with its padding.
func packetBytes(s *synthetic.Session, stream, packet int) []byte {
	p := &s.Streams[stream].Packets[packet]
	return append(s.PacketBytes(stream, p), make([]byte, p.Room/8)...)
}

func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, data, 0o600))
}

// appendTo appends to a file.
func appendTo(t testing.TB, name string, data []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// sold returns a session whose events are numbered from 1, in packets of two streams by turns. A packet begins every
// millisecond.
func sold(name string, packets, eventsOfPacket int) *synthetic.Session {
	s := synthetic.New(name, "vpid", "vtid")
	s.Environment = fmt.Sprintf(`trace_name = "%s"; `, name)
	s.Class("shop:sold", "number")
	streams := []*synthetic.Stream{s.Stream(), s.Stream()}
	number := 0
	for i := range packets {
		at := uint64(1_000_000 * (i + 1))
		streams[i%2].Packet(at)
		for range eventsOfPacket {
			number++
			at++
			streams[i%2].Event(at, "shop:sold", 7, 8, number)
		}
	}
	return s
}

// eventsOfPacket is the number of events in a packet of each of two streams.
var eventsOfPacket = [...]int{100, 150}

// alternating returns a session whose events are numbered from 1, and are in two streams by turns.
func alternating(name string, events int) *synthetic.Session {
	s := sold(name, 0, 0)
	for i := range events {
		stream, at := s.Streams[i%2], uint64(1000*(i+1))
		if i/2%eventsOfPacket[i%2] == 0 {
			stream.Packet(at)
		}
		stream.Event(at, "shop:sold", 7, 8, i+1)
	}
	return s
}

// numbers returns the numbers of the delivered events, in order.
func (b *bed) numbers() (numbers []int) {
	for _, r := range b.Records("shop:sold") {
		n, _ := r.Attributes().Get("number")
		numbers = append(numbers, int(n.Int()))
	}
	return numbers
}

// upTo returns the numbers from 1 to n.
func upTo(n int) (numbers []int) {
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return numbers
}

// awaitNumbers waits for these numbers, and checks that there are no others.
func (b *bed) awaitNumbers(want []int) {
	b.T.Helper()
	b.Await(fmt.Sprint(len(want), " events"), func() bool { return len(b.numbers()) >= len(want) })
	require.Equal(b.T, want, b.numbers())
}

// twice returns the sequence numbers of call events that are in several batches.
func (b *bed) twice() (twice []uint64) {
	b.T.Helper()
	type event struct {
		stream   callevent.StreamID
		sequence uint64
	}
	seen := map[event]bool{}
	for _, span := range b.Spans() {
		data, err := callevent.Data(span)
		require.NoError(b.T, err)
		var batch callevent.Batch
		require.NoError(b.T, batch.Unpack(data))
		events := make([]callevent.Event, batch.Len())
		batch.Events(events, 0)
		for _, e := range events {
			if seen[event{batch.Stream, e.Sequence}] {
				twice = append(twice, e.Sequence)
			}
			seen[event{batch.Stream, e.Sequence}] = true
		}
	}
	return twice
}

// storing is an option: positions are kept in a storage.
func storing(m *storagetest.Memory) func(*bed, *Config) {
	return func(b *bed, c *Config) { c.Storage, b.Host = &storagetest.ID, m.Host() }
}
