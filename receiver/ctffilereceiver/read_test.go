// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/sim/usttrace"
	"github.com/callbraid/callbraid/internal/testkit/storagetest"
)

func TestAllEventsOfARecordingArriveInOrderOfTime(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ust", "uid", "0", "64-bit"), sold("shop", 9, 5))
	b := readAll(t, dir)
	require.Equal(t, upTo(45), b.numbers())
	r := b.Records("shop:sold")[0]
	assert.Equal(t, "vm", r.Resource.Attributes().AsRaw()["host.name"])
	assert.Equal(t, "shop", r.Resource.Attributes().AsRaw()["lttng.session.name"])
	assert.EqualValues(t, 45, b.Counter("events"))
	assert.EqualValues(t, 9, b.Counter("packets"))
	assert.EqualValues(t, 1, b.Counter("traces_read"))
	line := b.AwaitLine("All traces are read").ContextMap()
	assert.EqualValues(t, 45, line["events"])
	assert.EqualValues(t, 0, line["damaged_packets"])
}

func TestEventsOfTheSameTimeAreInTheOrderOfTheirStreamsInstances(t *testing.T) {
	s := sold("shop", 0, 0)
	for i := range 20 {
		if i%10 == 0 {
			s.Streams[0].Packet(uint64(i + 1))
			s.Streams[1].Packet(uint64(i + 1))
		}
		for j, stream := range s.Streams {
			stream.Event(uint64(i+1), "shop:sold", 7, 8, 2*i+j+1)
		}
	}
	for name, files := range map[string][2]string{"the first is found first": {"a", "b"}, "the second is found first": {"b", "a"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, s)
			for i, file := range files {
				require.NoError(t, os.Rename(filepath.Join(dir, fmt.Sprint("channel0_", i)), filepath.Join(dir, file)))
			}
			assert.Equal(t, upTo(40), readAll(t, dir).numbers())
		})
	}
}

func TestAllEventsAndCallsOfAProgramArrive(t *testing.T) {
	dir := t.TempDir()
	written, err := usttrace.Write(dir, usttrace.Options{Events: fewer(testing.Short(), 50_000), Contexts: true})
	require.NoError(t, err)
	b := readAll(t, dir)
	assert.Len(t, b.Records(""), written.Events)
	assert.EqualValues(t, 2*written.Calls, b.Counter("call_events"))
	assert.Empty(t, b.twice())
}

func TestSeveralTracesAreReadWhateverTheirDepth(t *testing.T) {
	dir := t.TempDir()
	const traces = 7
	for i := range traces {
		write(t, filepath.Join(dir, fmt.Sprint(i), "deep"), sold(fmt.Sprint("trace ", i), 2, 3))
	}
	b := readAll(t, dir, func(_ *bed, c *Config) { c.Exclude = []string{filepath.Join(dir, "[56]")} })
	assert.Len(t, b.numbers(), (traces-2)*6)
	assert.EqualValues(t, traces-2, b.Counter("traces_read"))
}

func TestACollectorContinuesInTheMiddleOfAPacket(t *testing.T) {
	for name, number := range map[string]string{
		"with sequence numbers": "packet_seq_num", "without sequence numbers": "something_else",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			events := fewer(testing.Short(), 60_000)
			s := alternating("shop", events)
			write(t, dir, s)
			writeFile(t, filepath.Join(dir, "metadata"), bytes.ReplaceAll(s.Metadata(), []byte("packet_seq_num"), []byte(number)))
			kept := storagetest.New()
			var all []int
			inside := 0
			for len(all) < events {
				b := unstartedBed(t, dir, storing(kept))
				b.receiver.env.Settings.Limits.AheadBytes = 1
				b.Start()
				b.Await("some events", func() bool { return len(b.Logs.AllLogs()) > 0 })
				b.Shutdown()
				require.NotEmpty(t, b.numbers())
				all = append(all, b.numbers()...)
				if n := len(all); n/2%eventsOfPacket[0] != 0 || n/2%eventsOfPacket[1] != 0 {
					inside++
				}
			}
			require.True(t, slices.Equal(upTo(events), all), "each event arrives once")
			require.Positive(t, inside, "collectors that stopped inside a packet")
			assert.Empty(t, readAll(t, dir, storing(kept)).numbers(), "all was read")
		})
	}
}

func TestAWatchedTraceIsReadAsFarAsWholePacketsGo(t *testing.T) {
	dir := t.TempDir()
	s := sold("shop", 6, 5)
	write(t, dir, sold("shop", 0, 5))
	files := []string{filepath.Join(dir, "channel0_0"), filepath.Join(dir, "channel0_1")}
	b := newBed(t, dir, watching(50*time.Millisecond, time.Hour))
	for i := range 6 {
		packet := packetBytes(s, i%2, i/2)
		appendTo(t, files[i%2], packet[:20])
		appendTo(t, files[i%2], packet[20:len(packet)-9])
		appendTo(t, files[i%2], packet[len(packet)-9:])
		b.awaitNumbers(upTo(5 * (i + 1)))
	}
	b.Shutdown()
	assert.Zero(t, b.Counter("packets_damaged"))
}

func TestChunksOfARotationAreOneTrace(t *testing.T) {
	dir := t.TempDir()
	s := sold("shop", 8, 5)
	b := newBed(t, filepath.Join(dir, "**"), watching(20*time.Millisecond, time.Hour))
	for chunk := range 4 {
		at := filepath.Join(dir, "archives", fmt.Sprintf("chunk-%d", chunk), "ust")
		hidden := filepath.Join(t.TempDir(), "ust")
		require.NoError(t, os.MkdirAll(hidden, 0o700))
		writeFile(t, filepath.Join(hidden, "metadata"), s.Metadata())
		for i := range 2 {
			// Each chunk repeats the last packet of the one before, as snapshots do.
			var data []byte
			for j := max(0, chunk-1); j <= chunk; j++ {
				data = append(data, packetBytes(s, i, j)...)
			}
			writeFile(t, filepath.Join(hidden, fmt.Sprintf("channel0_%d", i)), data)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.Rename(hidden, at))
		b.awaitNumbers(upTo(10 * (chunk + 1)))
	}
	b.Shutdown()
	assert.EqualValues(t, 8, b.Counter("packets"))
	assert.Zero(t, b.Counter("packets_lost"))
	assert.EqualValues(t, 1, b.Lines("Reading a trace"))
}

func TestATraceThatGrowsAfterItsEndIsReadOn(t *testing.T) {
	dir := t.TempDir()
	s := sold("shop", 4, 5)
	write(t, dir, sold("shop", 2, 5))
	b := newBed(t, dir, watching(time.Millisecond, 2*time.Millisecond))
	b.AwaitLine("A trace was read to its end")
	b.awaitNumbers(upTo(10))
	for i := range 2 {
		appendTo(t, filepath.Join(dir, fmt.Sprintf("channel0_%d", i)), packetBytes(s, i, 1))
	}
	b.awaitNumbers(upTo(20))
}

func TestAFileThatReplacesAnotherIsReadOn(t *testing.T) {
	for name, replace := range map[string]func(t testing.TB, name string, data []byte){
		"a new file with the old name": func(t testing.TB, name string, data []byte) {
			writeFile(t, name+".new", data)
			require.NoError(t, os.Rename(name+".new", name))
		},
		"the same file, cut before": writeFile,
	} {
		for when, option := range map[string]func(*bed, *Config){
			"while the trace is read": watching(time.Millisecond, time.Hour), "after its end": watching(time.Millisecond, 2*time.Millisecond),
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir := t.TempDir()
				s := sold("shop", 6, 5)
				write(t, dir, sold("shop", 4, 5))
				b := newBed(t, dir, option)
				b.awaitNumbers(upTo(20))
				for i := range 2 {
					// The new file is smaller.
					replace(t, filepath.Join(dir, fmt.Sprintf("channel0_%d", i)), packetBytes(s, i, 2))
				}
				b.awaitNumbers(upTo(30))
			})
		}
	}
}

func TestTheCollectorIsStoppedAfterAllRecordsAreDelivered(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, sold("shop", 4, 5))
	b := unstartedBed(t, dir, func(_ *bed, c *Config) { c.AtEnd = AtEndStopCollector })
	delivered := make(chan int, 1)
	b.receiver.reader.stopCollector = func() error {
		select {
		case delivered <- len(b.numbers()):
		default: // a signal that is sent again
		}
		return nil
	}
	b.Start()
	assert.Equal(t, 20, <-delivered)
}

func TestTheLastOfSeveralReceiversStopsTheCollector(t *testing.T) {
	var slow *bed
	var sent, early atomic.Int32
	shared := new(common)
	unstarted := func(dir string) *bed {
		b := unstartedBed(t, dir, func(b *bed, c *Config) { b.common, c.AtEnd = shared, AtEndStopCollector })
		b.receiver.reader.stopCollector = func() error {
			if len(slow.numbers()) < 20 {
				early.Add(1)
			}
			sent.Add(1)
			return nil
		}
		return b
	}
	dir := t.TempDir()
	write(t, dir, sold("shop", 4, 5))
	slow = unstarted(dir)
	slow.Logs.RefuseWith(errors.New("the pipeline is full"))
	slow.Start()
	fast := unstarted(t.TempDir())
	fast.Start()
	fast.AwaitLine("There is no CTF trace to read: no directory that matches include has a file named metadata")
	slow.Await("refused records", func() bool { return slow.Logs.Calls().Returned > 3 })
	slow.Logs.RefuseWith(nil)
	slow.Await("a signal", func() bool { return sent.Load() > 0 })
	assert.Zero(t, early.Load())
}

func TestASignalBeforeTheCollectorListensIsSentAgain(t *testing.T) {
	b := unstartedBed(t, t.TempDir(), func(_ *bed, c *Config) { c.AtEnd = AtEndStopCollector })
	var sent atomic.Int32
	b.receiver.reader.stopCollector = func() error {
		sent.Add(1)
		return terminate() // this process does not listen
	}
	b.Start()
	b.Await("three signals", func() bool { return sent.Load() >= 3 })
	b.Shutdown()
	assert.Zero(t, b.Lines("The collector cannot be shut down after the last trace: stop it"))
}

func TestMetricsShowTheProgressAndTheStateOfATrace(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, sold("shop", 4, 5))
	b := newBed(t, dir, watching(time.Millisecond, time.Hour), func(_ *bed, c *Config) { c.CollectionInterval = 100 * time.Millisecond })
	b.awaitNumbers(upTo(20))
	values := func() map[string]int64 {
		all := b.Metrics.AllMetrics()
		if len(all) == 0 {
			return nil
		}
		values := map[string]int64{}
		for _, m := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			values[m.Name()] = m.Sum().DataPoints().At(0).IntValue()
		}
		return values
	}
	want := map[string]int64{
		"lttng.events": 20, "lttng.events.discarded": 0, "lttng.packets": 4, "lttng.packets.lost": 0, "lttng.process.count": 1, "lttng.stream.count": 2,
	}
	b.Await("a collection", func() bool { return maps.Equal(want, values()) })
	found, read := b.receiver.reader.progress()
	assert.Positive(t, found)
	assert.Equal(t, found, read)
}

func TestTheLogShowsTheShareAndTheTimeLeft(t *testing.T) {
	dir := t.TempDir()
	all := sold("shop", 6, 5)
	write(t, dir, sold("shop", 4, 5))
	packet := packetBytes(all, 0, 2)
	unread := len(packet) - 9 // a packet that is not whole yet
	appendTo(t, filepath.Join(dir, "channel0_0"), packet[:unread])
	b := newBed(t, dir, watching(time.Millisecond, time.Hour))
	b.awaitNumbers(upTo(20))
	reader := b.receiver.reader
	reader.logProgress(false)
	assert.Zero(t, b.Lines("Reading traces"), "no trace is read")

	reader.mu.Lock()
	reader.sum.began = reader.env.Now().Add(-40 * time.Second)
	reader.mu.Unlock()
	b.Await("all read bytes", func() bool { found, read := reader.progress(); return found-read == int64(unread) })
	reader.logProgress(true)
	fields := b.AwaitLine("Reading traces").ContextMap()
	share := 4 * float64(len(packet)) / float64(4*len(packet)+unread)
	assert.InDelta(t, share, fields["share"], 1e-9)
	assert.EqualValues(t, 20, fields["events"])
	assert.EqualValues(t, 1, fields["traces"])
	assert.InDelta(t, 40*(1-share)/share, fields["time_left"].(time.Duration).Seconds(), 2)
	b.Shutdown()
}

func TestATraceOfCTF2IsReadLikeOneOfCTF1(t *testing.T) {
	s := sold("shop", 9, 5)
	texts := func(metadata []byte) (texts []string) {
		dir := t.TempDir()
		write(t, dir, s)
		writeFile(t, filepath.Join(dir, "metadata"), metadata)
		b := readAll(t, dir)
		require.Equal(t, upTo(45), b.numbers())
		for _, r := range b.Records("shop:sold") {
			texts = append(texts, text(r.Resource.Attributes().AsRaw(), r.Timestamp(), r.Attributes().AsRaw()))
		}
		return texts
	}
	assert.Equal(t, texts(s.Metadata()), texts(s.MetadataCTF2()))
}
