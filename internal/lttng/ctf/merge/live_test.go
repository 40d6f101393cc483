// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// liveSession merges the replies to a viewer in their order.
type liveSession struct {
	t       *testing.T
	trace   *ctf.Trace
	merger  *merge.Merger
	streams map[uint64]*merge.Stream
	index   map[uint64]lttnglive.Index
	text    []string
	// early counts the events that were returned before the last stream had ended.
	early int
}

func newLiveSession(t *testing.T) *liveSession {
	trace := ctf.NewTrace()
	return &liveSession{
		t: t, trace: trace, merger: merge.New(trace, merge.Options{}),
		streams: map[uint64]*merge.Stream{}, index: map[uint64]lttnglive.Index{},
	}
}

func (l *liveSession) add(streams []lttnglive.Stream) {
	for _, s := range streams {
		if !s.Metadata {
			l.streams[s.ID] = l.merger.AddStream(s.ID, s.Channel)
		}
	}
}

// exchange processes one request with its reply.
func (l *liveSession) exchange(e capture.Exchange) {
	switch request := e.Request.(type) {
	case lttnglive.AttachSessionRequest:
		l.add(e.Reply.(lttnglive.AttachSessionReply).Streams)
	case lttnglive.GetNewStreamsRequest:
		l.add(e.Reply.(lttnglive.NewStreamsReply).Streams)
	case lttnglive.GetMetadataRequest:
		require.NoError(l.t, l.trace.Append(e.Reply.(lttnglive.MetadataReply).Data))
	case lttnglive.GetNextIndexRequest:
		index := e.Reply.(lttnglive.Index)
		l.index[request.Stream] = index
		switch index.Status {
		case lttnglive.IndexInactive:
			l.streams[request.Stream].Promise(index.StreamClass, index.TimestampEnd)
		case lttnglive.IndexHangUp:
			l.streams[request.Stream].End()
		}
	case lttnglive.GetPacketRequest:
		index := l.index[request.Stream]
		l.streams[request.Stream].Packet(e.Reply.(lttnglive.PacketReply).Data, &merge.Index{
			StreamClass: index.StreamClass, Begin: index.TimestampBegin, End: index.TimestampEnd,
			Discarded: index.EventsDiscarded, Content: index.ContentSize,
		})
	}
	l.merger.Advance(e.At)
	for kind := l.merger.Next(); kind != merge.Nothing; kind = l.merger.Next() {
		if kind == merge.StreamEnd {
			delete(l.streams, l.merger.Stream.ID)
		}
		if kind != merge.Event {
			continue
		}
		assert.False(l.t, l.merger.Late)
		l.text = append(l.text, line(l.merger))
		if len(l.streams) > 1 {
			l.early++
		}
	}
	require.NoError(l.t, l.merger.Err())
}

// The replies of a real relay daemon to a viewer are merged in the order of the reference reader, and no event is
// late. Metadata and streams arrive in between.
func TestLiveCapturesAreMergedInTheOrderOfTheReferenceReader(t *testing.T) {
	for _, c := range lttngdata.Captures {
		t.Run(c.Name, func(t *testing.T) {
			recorded, err := capture.Open(lttngdata.CaptureFile(t, c.Name))
			require.NoError(t, err)
			l := newLiveSession(t)
			for _, e := range recorded.Exchanges {
				l.exchange(e)
			}
			assert.Empty(t, l.streams)
			assert.Zero(t, l.merger.Waiting())
			require.Equal(t, strings.Join(referenceLines(t, lttngdata.OpenCapture(t, c.Name)), "\n"), strings.Join(l.text, "\n"))
			assert.NotZero(t, l.early, "all waited for the end")
		})
	}
}

// referenceLines returns the time and the name of each event in the text of the reference reader.
func referenceLines(t *testing.T, files fs.FS) []string {
	t.Helper()
	text, err := fs.ReadFile(files, "babeltrace1-offline.txt")
	require.NoError(t, err)
	var lines []string
	for _, found := range printed.FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, found[1]+" "+found[2])
	}
	return lines
}

// pairing pairs calls by the rules for losses, and counts pairs that match or not.
type pairing struct {
	stacks           map[uint64][]uint64 // addresses by thread
	open             int                 // losses
	matched, wrong   int
	orphans, ignored int
}

func (p *pairing) event(t *testing.T, m *merge.Merger, kind merge.Kind) {
	switch kind {
	case merge.LossBegin:
		p.open++
		clear(p.stacks)
	case merge.LossEnd:
		p.open--
	case merge.Event:
		entry := strings.HasSuffix(m.Event.Class.Name, ":func_entry")
		if !entry && !strings.HasSuffix(m.Event.Class.Name, ":func_exit") {
			return
		}
		if p.open > 0 {
			p.ignored++
			return
		}
		vtid := m.Event.Class.Stream.EventCommonContext.Lookup("vtid")
		addr := m.Event.Class.Fields.Lookup("addr")
		require.NotNil(t, vtid)
		thread, function := uint64(m.Event.Int(vtid)), m.Event.Uint(addr)
		stack := p.stacks[thread]
		switch {
		case entry:
			p.stacks[thread] = append(stack, function)
		case len(stack) == 0:
			p.orphans++
		case !slices.Contains(stack, function) || stack[len(stack)-1] != function:
			p.wrong++
		default:
			p.matched++
			p.stacks[thread] = stack[:len(stack)-1]
		}
	}
}

// Because losses are intervals, no exit is paired with an entry of another call. In cyg1, more events are lost than
// recorded.
func TestNoCallIsPairedAcrossALoss(t *testing.T) {
	for name, want := range map[string]pairing{
		"cygok": {matched: 109},
		"cyg1":  {matched: 1943, orphans: 62, ignored: 3845},
	} {
		t.Run(name, func(t *testing.T) {
			dir := lttngdata.OpenTrace(t, lttngdata.OpenCapture(t, name))
			m := merge.New(dir.Trace, merge.Options{})
			for i, packets := range lttngdata.Packets(t, dir) {
				s := m.AddStream(uint64(i), dir.Streams[i])
				for _, packet := range packets {
					s.Packet(packet, nil)
				}
				s.End()
			}
			p := pairing{stacks: map[uint64][]uint64{}}
			for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
				p.event(t, m, kind)
			}
			require.NoError(t, m.Err())
			p.stacks = nil
			assert.Equal(t, want, p)
		})
	}
}
