// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package functionmetrics

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/origin"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
)

// Metrics has the cumulative series of all origins.
type Metrics struct {
	shared
	// origins are in the order of their first streams, and byKey are the same.
	origins []*series
	byKey   map[origin.Key]*series
	// added is the growth that is not in the series yet, and addedBytes is about its memory.
	added      []growth
	addedBytes int
	// unnamed is the origin of streams if a bound is full for their own. Its key is that of no other.
	unnamed *origin.Origin
	// isHurried: the next interval ends series without streams.
	isHurried bool
	// forgotten is the last interval that ended series, of any origin: those of an ended one are no longer known.
	forgotten pcommon.Timestamp
}

// growth is the growth of a stream.
type growth struct {
	stream *Stream
	*callsum.Increment
}

// names are names of an increment. Later increments of a stream share them until the stream forgets them.
type names struct {
	functions  []*callevent.Function
	exceptions []string
}

// Moment is the time of an interval, by two clocks.
type Moment struct {
	// Unix is the time of the points. It can jump, because the system's clock can be set.
	Unix pcommon.Timestamp
	// Elapsed is monotonic time since any moment before. It is later in each interval. Series expire by it.
	Elapsed time.Duration
}

// New returns metrics without series.
func New(settings Settings) *Metrics {
	return &Metrics{
		shared: shared{settings: settings}, byKey: map[origin.Key]*series{},
		unnamed: origin.Unnamed(),
	}
}

// Stream is a call stream that adds to the series of its origin. series is nil before Open.
type Stream struct {
	metrics *Metrics
	series  *series
	// originFull is the bound that was full for the origin of the stream.
	originFull bound
	// counted are the names that addedBytes contains.
	counted names
}

// NewStream returns a stream that adds to no series before Open. It reads nothing that changes.
func (m *Metrics) NewStream() *Stream { return &Stream{metrics: m} }

// Open begins a stream at a time.
func (m *Metrics) Open(from *origin.Origin, start pcommon.Timestamp) *Stream {
	s := m.NewStream()
	s.Open(from, start)
	return s
}

// Open begins the stream at a time.
func (of *Stream) Open(from *origin.Origin, start pcommon.Timestamp) {
	s, full := of.metrics.seriesOf(from)
	// A stream without calls until now may have begun before the end of series with the same origin. Its first
	// calls ended after that, because an interval has all calls so far.
	start = max(start, of.metrics.forgotten)
	if !s.isSent && (s.start == 0 || start < s.start) {
		s.start = start
	}
	s.streams++
	s.ended, s.final, s.isAnswered, s.mustEnd = 0, 0, false, false
	of.series, of.originFull = s, full
}

// seriesOf returns the series of an origin, which may be new, or those of the unnamed origin and the bound
// that is full.
func (m *Metrics) seriesOf(from *origin.Origin) (*series, bound) {
	if s := m.byKey[from.Key]; s != nil {
		return s, noBound
	}
	if full := m.full(len(m.origins), 0, bytesOfSeries+bytesOfRest+from.Bytes, 0); full != noBound && from != m.unnamed {
		s, _ := m.seriesOf(m.unnamed)
		return s, full
	}
	s := &series{origin: from, functionAt: map[string]int{}, outcomeAt: map[outcomeKey]int{}, rest: none}
	s.isRest = from == m.unnamed
	m.origins = append(m.origins, s)
	m.byKey[from.Key] = s
	m.bytes += bytesOfSeries + from.Bytes
	s.reserve(&m.shared, bytesOfRest)
	return s, noBound
}

// Bytes returns about the memory of all series.
func (m *Metrics) Bytes() int { return m.bytes + m.addedBytes }

// The approximate memory of growth: of an increment, of an entry beside its buckets, and of a name
// beside its texts. Streams share the names, and may have forgotten them.
const (
	bytesOfAdded = 200
	bytesOfSum   = 80
	bytesOfName  = 110
)

// addedBytesOfFunction bounds the memory of growth that is not in the series yet, for each function
// of MaxFunctions.
const addedBytesOfFunction = 1024

// Add adds the growth of the stream, whose sums belong to the metrics from now on. Streams may wait
// for it. So it goes through the series only if increments pile up.
func (s *Stream) Add(i *callsum.Increment) {
	m := s.metrics
	m.added = append(m.added, growth{s, &callsum.Increment{
		Functions: i.Functions, Exceptions: i.Exceptions, ByFunction: i.ByFunction,
	}})
	m.addedBytes += bytesOfAdded
	for n := range i.ByFunction {
		m.addedBytes += bytesOfSum + bytesOfBucket*cap(i.ByFunction[n].Histogram.Counts)
	}
	m.addedBytes += s.newNames(i)
	if m.addedBytes > m.settings.maxAddedBytes() {
		m.merge()
	}
}

// newNames returns about the memory of the names that the stream's increments before do not have.
func (s *Stream) newNames(i *callsum.Increment) (bytes int) {
	known := s.counted
	s.counted = names{i.Functions, i.Exceptions}
	for n, f := range i.Functions {
		if n >= len(known.functions) || known.functions[n] != f {
			bytes += bytesOfName + len(f.Qualified) + len(f.Display) + len(f.Text) + len(f.File)
		}
	}
	for n, e := range i.Exceptions {
		if n >= len(known.exceptions) || known.exceptions[n] != e {
			bytes += bytesOfName + len(e)
		}
	}
	return bytes
}

// maxAddedBytes bounds the memory of growth that is not in the series yet.
func (s *Settings) maxAddedBytes() int {
	most := addedBytesOfFunction * s.MaxFunctions
	if s.MaxBytes > 0 {
		most = min(most, s.MaxBytes/4)
	}
	return most
}

// merge adds all growth to the series.
func (m *Metrics) merge() {
	for _, g := range m.added {
		g.stream.series.merge(&m.shared, g.Increment, g.stream.originFull)
		g.stream.counted = names{}
	}
	clear(m.added)
	m.added, m.addedBytes = m.added[:0], 0
	if folded := m.folded; m.settings.Folded != nil && folded != ([bounds]uint64{}) {
		m.settings.Folded(folded[maxFunctions], folded[maxNameBytes], folded[maxBytes])
		m.folded = [bounds]uint64{}
	}
}

// End ends the stream. Its last growth was added before.
func (s *Stream) End() { s.series.streams-- }

// Interval returns the points of all series at a moment, and attaches the exemplars. An origin without
// streams keeps its last values until they expire and [Metrics.Answered] follows. Then it has points without a value, which
// end its series.
func (m *Metrics) Interval(now Moment, exemplars *Exemplars) pmetric.Metrics {
	m.merge()
	for _, s := range m.origins {
		s.mustEnd = s.mustEnd || m.isHurried
		if s.isAnswered && s.mustEnd && s.final == 0 {
			s.final = now.Elapsed
		}
	}
	metrics := pmetric.NewMetrics()
	for _, s := range m.origins {
		if !s.isEmpty() {
			s.start = min(s.start, now.Unix)
			s.isSent = true
			s.appendTo(metrics, now.Unix)
		}
	}
	for key, exemplar := range exemplars.latest {
		if s := key.stream.series; s != nil {
			s.attach(key.outcomeKey, exemplar)
		}
	}
	m.forget(func(s *series) bool { return m.endInterval(s, now.Elapsed) })
	m.last, m.isHurried, m.wasFull = now.Unix, false, false
	return metrics
}

// Hurry makes the next interval end all series without streams whose last values were answered. The others
// end as soon as theirs are.
func (m *Metrics) Hurry() { m.isHurried = true }

// endInterval notes whether series have no streams any more, and whether they must end: they have expired, a bound was full, or
// the memory budget demands memory. It reports whether they can be forgotten, because they have no points.
func (m *Metrics) endInterval(s *series, now time.Duration) bool {
	s.durations, s.counts = pmetric.ExponentialHistogramDataPointSlice{}, pmetric.NumberDataPointSlice{}
	switch {
	case s.streams > 0:
		s.mustEnd = false
		return false
	case s.isEmpty():
		return true
	case s.ended == 0:
		s.ended = now
	}
	s.mustEnd = s.mustEnd || now >= s.ended+m.settings.Expiration || m.wasFull || m.isHurried
	return false
}

// Answered notes that the next component has accepted the points of all intervals up to a [Moment.Elapsed], or refused them for good.
// Only then series end, and are forgotten after the answer to the points without a value. So no last point is lost while the
// next component refuses.
func (m *Metrics) Answered(until time.Duration) {
	m.forget(func(s *series) bool {
		s.isAnswered = s.ended > 0 && s.ended <= until
		forgets := s.final > 0 && s.final <= until
		if forgets {
			m.forgotten = m.last
		}
		return forgets
	})
}

// forget forgets the matching series, and frees their memory.
func (m *Metrics) forget(matches func(*series) bool) {
	m.origins = slices.DeleteFunc(m.origins, func(s *series) bool {
		if !matches(s) {
			return false
		}
		delete(m.byKey, s.origin.Key)
		m.functions -= s.counted
		m.bytes -= bytesOfSeries + s.origin.Bytes + s.bytes
		m.reserved -= s.reserved
		return true
	})
}

// Exemplars has the latest call of each function, and of each error type of it, since the last
// interval. One goroutine at a time uses it. It may be another one than the owner of the metrics.
//
// At an interval the owner replaces the exemplars first, and takes the sums of all streams
// afterwards. Then the sums contain each exemplar. If it could not take all of them, the owner moves unknown exemplars to the
// next interval: see [Metrics.TakeUnknown]. They wait there as long as no new ones need their places.
type Exemplars struct {
	latest map[exemplarKey]Exemplar
	// waiting are the keys of exemplars that another interval has moved here, unless a new one has replaced them.
	waiting map[exemplarKey]struct{}
	// bytes is about their memory.
	bytes          int
	most, maxBytes int
}

type exemplarKey struct {
	stream *Stream
	outcomeKey
}

// NewExemplars returns no exemplars. They will be at most as many as the settings allow functions.
func NewExemplars(settings Settings) *Exemplars {
	e := &Exemplars{latest: map[exemplarKey]Exemplar{}, waiting: map[exemplarKey]struct{}{}, most: settings.MaxFunctions, maxBytes: math.MaxInt}
	if settings.MaxBytes > 0 {
		e.maxBytes = settings.MaxBytes / 8
	}
	return e
}

// Set sets the exemplar of a function whose call returned. A later call replaces it.
func (e *Exemplars) Set(s *Stream, function string, exemplar Exemplar) {
	e.set(exemplarKey{s, outcomeKey{function: function}}, exemplar)
}

// SetError sets the exemplar of a function whose call an exception left. An empty error type is an
// unknown one.
func (e *Exemplars) SetError(s *Stream, function, errorType string, exemplar Exemplar) {
	e.set(exemplarKey{s, failedKey(function, errorType)}, exemplar)
}

func (e *Exemplars) set(key exemplarKey, exemplar Exemplar) {
	known, ok := e.latest[key]
	if ok && known.Time > exemplar.Time {
		return
	}
	if !ok {
		if !e.hasRoom(&key) {
			e.dropWaiting()
		}
		if !e.hasRoom(&key) {
			return
		}
		e.bytes += key.bytes()
	}
	e.latest[key] = exemplar
	delete(e.waiting, key)
}

// hasRoom reports whether another key has room.
func (e *Exemplars) hasRoom(key *exemplarKey) bool {
	return len(e.latest) < e.most && key.bytes() <= e.maxBytes-e.bytes
}

// dropWaiting drops the exemplars of other intervals.
func (e *Exemplars) dropWaiting() {
	for key := range e.waiting {
		e.bytes -= key.bytes()
		delete(e.latest, key)
	}
	clear(e.waiting)
}

// Add adds the exemplars of another interval, as far as they have room.
func (e *Exemplars) Add(other *Exemplars) {
	for key, exemplar := range other.latest {
		if _, ok := e.latest[key]; ok {
			e.set(key, exemplar)
		} else if e.hasRoom(&key) {
			e.latest[key], e.waiting[key] = exemplar, struct{}{}
			e.bytes += key.bytes()
		}
	}
}

// TakeUnknown removes and returns the exemplars whose series do not exist. Their calls can be in sums that follow. Or they
// are in the rest, but only sums of all streams would show that.
func (m *Metrics) TakeUnknown(from *Exemplars) *Exemplars {
	m.merge()
	unknown := NewExemplars(m.settings)
	for key, exemplar := range from.latest {
		if s := key.stream.series; s != nil {
			if _, known := s.outcomeAt[key.outcomeKey]; known {
				continue
			}
		}
		unknown.set(key, exemplar)
		delete(from.latest, key)
	}
	return unknown
}

// bytesOfExemplar is about the memory of an exemplar beside the texts of its key, with its places in both maps. The
// stream shares the texts, and may have forgotten them.
const bytesOfExemplar = 230

func (k *exemplarKey) bytes() int { return bytesOfExemplar + len(k.function) + len(k.errorType) }

// Bytes returns about the memory of the exemplars.
func (e *Exemplars) Bytes() int { return e.bytes }
