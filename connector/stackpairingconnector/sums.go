// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"crypto/rand"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/functionmetrics"
	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/origin"
	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/pathprofiles"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/engine"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// sums has the sums of all streams. The engine adds to them, and the outputs read them. Locks are taken in this order:
//
//  1. The lock of a shard of the engine.
//  2. The lock of the sums of an origin (engine.originSums).
//  3. sums.mu
//  4. sums.arrivalsMu or sums.exemplarsMu
//
// mu is held while a message is made. The goroutine of a stream can hold the first two, so it only tries to lock mu, and otherwise
// leaves its arrival. Only if too many arrivals wait, it waits for mu. No code that holds mu takes one of the first two.
type sums struct {
	now func() time.Time

	// mu guards the sums.
	mu sync.Mutex
	// metrics is nil without a metrics pipeline, and growth without a profiles pipeline.
	metrics         *functionmetrics.Metrics
	metricSettings  functionmetrics.Settings
	growth          *pathprofiles.Growth
	profileSettings pathprofiles.Settings
	// summed is their memory.
	summed int

	// arrivalsMu guards arrivals.
	arrivalsMu sync.Mutex
	arrivals   []arrival

	// exemplarsMu guards exemplars and their memory. So no stream waits for a message.
	exemplarsMu   sync.Mutex
	exemplars     *functionmetrics.Exemplars
	exemplarBytes int

	// held is the memory of messages that wait, and of intervals until their last message is sent.
	held atomic.Int64
	// bytes is the memory of all, to be read without a lock. memory is the same as a metric.
	bytes  atomic.Int64
	memory metric.Int64UpDownCounter
	// isHurried: the memory budget demanded memory since the last message of metrics.
	isHurried atomic.Bool
	// folded counts calls without room by bound. It is called while mu is held.
	folded func(bound string, calls uint64)
}

// maxMessageBytes bounds a message of metrics or of profiles. gRPC refuses more than 4 MiB by default.
const maxMessageBytes = 2 << 20

func newSums(cfg *Config, metrics, profiles bool, memory metric.Int64UpDownCounter) *sums {
	s := &sums{now: time.Now, memory: memory, folded: func(string, uint64) {}}
	// Each output has a half.
	maxBytes := int(min(int64(cfg.Limits.MaxSumsMiB)<<19, math.MaxInt))
	if metrics {
		s.metricSettings = functionmetrics.Settings{MaxFunctions: cfg.Metrics.MaxFunctions, MaxNameBytes: cfg.Metrics.MaxNameBytes, MaxBytes: maxBytes, Expiration: cfg.Metrics.Expiration}
		s.metricSettings.Folded = func(functions, names, bytes uint64) {
			s.folded(foldedByFunctions, functions)
			s.folded(foldedByNames, names)
			s.folded(foldedByBytes, bytes)
		}
		s.metrics = functionmetrics.New(s.metricSettings)
		s.exemplars = functionmetrics.NewExemplars(s.metricSettings)
	}
	if profiles {
		s.profileSettings = pathprofiles.Settings{MaxPaths: cfg.Profiles.MaxPaths, MaxBytes: maxBytes, MaxMessageBytes: maxMessageBytes, NewID: newID}
		s.profileSettings.Folded = func(paths, bytes uint64) {
			s.folded(foldedByPaths, paths)
			s.folded(foldedByBytes, bytes)
		}
		s.growth = pathprofiles.NewGrowth(s.profileSettings)
	}
	return s
}

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// Begin begins the sums of a stream.
func (s *sums) Begin() engine.SourceSums {
	of := &streamSums{sums: s, start: pcommon.NewTimestampFromTime(s.now())}
	if s.metrics != nil {
		of.series = s.metrics.NewStream()
	}
	return of
}

// Bytes is about the memory of all sums, and of messages that wait.
func (s *sums) Bytes() int64 { return s.bytes.Load() }

// GiveWay makes the next message of metrics end all series without streams. It takes no lock.
func (s *sums) GiveWay() { s.isHurried.Store(true) }

// measure updates the memory. The caller holds mu.
func (s *sums) measure() {
	bytes := 0
	if s.metrics != nil {
		bytes += s.metrics.Bytes()
	}
	if s.growth != nil {
		bytes += s.growth.Bytes()
	}
	s.setBytes(&s.summed, bytes)
}

// setBytes sets the memory of a part.
func (s *sums) setBytes(of *int, bytes int) {
	if change := bytes - *of; change != 0 {
		*of = bytes
		s.count(change)
	}
}

// hold changes the memory that is held.
func (s *sums) hold(change int) {
	s.held.Add(int64(change))
	s.count(change)
}

// count changes the memory of all.
func (s *sums) count(change int) {
	s.bytes.Add(int64(change))
	s.memory.Add(context.Background(), int64(change))
}

// arrival is an increment of a stream, or its end.
type arrival struct {
	of     *streamSums
	isEnd  bool
	source *engine.Source
	callsum.Increment
}

// mostArrivals is the number of arrivals that wait while a message is made. Further ones wait with their streams.
const mostArrivals = 64

// arrive adds an arrival to the sums, now or when a message is made. The code that has locked mu adds it then.
func (s *sums) arrive(a arrival) {
	s.arrivalsMu.Lock()
	s.arrivals = append(s.arrivals, a)
	isFull := len(s.arrivals) > mostArrivals
	s.arrivalsMu.Unlock()
	if isFull {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return
	}
	s.unlock()
}

// lock locks mu, and adds all arrivals to the sums.
func (s *sums) lock() {
	s.mu.Lock()
	s.addArrivals()
}

// unlock unlocks mu. No arrival stays behind: one that finds mu locked is in arrivals before the last look at them.
func (s *sums) unlock() {
	for {
		s.addArrivals()
		s.mu.Unlock()
		if !s.hasArrivals() || !s.mu.TryLock() {
			return
		}
	}
}

func (s *sums) hasArrivals() bool {
	s.arrivalsMu.Lock()
	defer s.arrivalsMu.Unlock()
	return len(s.arrivals) > 0
}

// addArrivals adds all arrivals to the sums. The caller holds mu.
func (s *sums) addArrivals() {
	s.arrivalsMu.Lock()
	arrivals := s.arrivals
	s.arrivals = nil
	s.arrivalsMu.Unlock()
	for i := range arrivals {
		arrivals[i].of.add(&arrivals[i])
	}
	s.measure()
}

// release takes all memory off the account, after the last message.
func (s *sums) release() {
	s.lock()
	defer s.mu.Unlock()
	s.setBytes(&s.summed, 0)
	s.exemplarsMu.Lock()
	defer s.exemplarsMu.Unlock()
	s.setBytes(&s.exemplarBytes, 0)
}

// streamSums are the sums of a stream with one resource. The engine makes one call of Add and End at
// a time.
type streamSums struct {
	sums  *sums
	start pcommon.Timestamp
	// ended: End was called. The increment of a step that took longer can follow.
	ended bool
	// source is that of the last increment, and origin the same for profiles. Both are nil before the first one.
	source *engine.Source
	origin *origin.Origin
	// series does not change. It is nil without metrics.
	series *functionmetrics.Stream
}

// open opens the series for an increment of a source. The engine begins the sums of a stream while
// others wait, so that happens at the first increment. After the end each increment opens them
// again. They may be forgotten by then, and new series must not begin before their end.
func (s *streamSums) open(from *engine.Source) {
	start, isOpen := s.start, s.source != nil && !s.ended
	if s.source != nil {
		start = pcommon.NewTimestampFromTime(s.sums.now())
	}
	if s.source != from {
		s.source, s.origin = from, origin.New(from.Resource, from.ResourceSchemaURL, from.Scope, from.ScopeSchemaURL)
	}
	if s.series != nil && !isOpen {
		s.series.Open(metricsOrigin(from), start)
	}
}

// metricsOrigin returns the origin of metrics, without attributes and schema of the scope. The attributes report
// on the agent, and change while the program runs. Each change would begin new series in Prometheus. The schema
// is not sent, so two of them must not make two series of one name.
func metricsOrigin(from *engine.Source) *origin.Origin {
	scope := pcommon.NewInstrumentationScope()
	scope.SetName(from.Scope.Name())
	scope.SetVersion(from.Scope.Version())
	return origin.New(from.Resource, from.ResourceSchemaURL, scope, "")
}

// Add adds an increment.
func (s *streamSums) Add(inc *callsum.Increment, from *engine.Source) {
	s.sums.arrive(arrival{of: s, source: from, Increment: *inc})
}

// End ends the sums of the stream.
func (s *streamSums) End() { s.sums.arrive(arrival{of: s, isEnd: true}) }

// add adds an arrival to the sums. The caller holds their mu.
func (s *streamSums) add(a *arrival) {
	if a.isEnd {
		s.ended = true
		if s.series != nil && s.source != nil {
			s.series.End()
		}
		return
	}
	s.open(a.source)
	if s.series != nil {
		s.series.Add(&a.Increment)
		if s.ended {
			s.series.End()
		}
	}
	if s.sums.growth != nil {
		s.sums.growth.Add(s.origin, &a.Increment)
	}
}

// mostExemplars is the number of calls of a hand-over that can become exemplars: the last ones.
const mostExemplars = 256

// Kept makes exemplars of calls that become spans. The lock of a shard may be held meanwhile, so it
// never takes the one that is held while a message is made.
func (s *streamSums) Kept(out *pairing.Output, id *engine.Identity) {
	all := s.sums
	if all.metrics == nil {
		return
	}
	all.exemplarsMu.Lock()
	defer all.exemplarsMu.Unlock()
	for i := max(0, len(out.Calls)-mostExemplars); i < len(out.Calls); i++ {
		c := &out.Calls[i]
		exemplar := functionmetrics.Exemplar{
			TraceID: id.TraceID(c.Trace), SpanID: id.SpanID(c.Sequence),
			Duration: time.Duration(c.End - c.Start), Time: pcommon.Timestamp(c.End),
		}
		if of := out.RepeatedOf(c); of != nil {
			// The span is longer than each of its calls.
			exemplar.Duration = time.Duration(of.Greatest)
		}
		if c.Unwound {
			all.exemplars.SetError(s.series, c.Function.Qualified, c.ErrorType, exemplar)
		} else {
			all.exemplars.Set(s.series, c.Function.Qualified, exemplar)
		}
	}
	all.setBytes(&all.exemplarBytes, all.exemplars.Bytes())
}

// swapExemplars begins new exemplars, and returns those of the interval that ends.
func (s *sums) swapExemplars() *functionmetrics.Exemplars {
	s.exemplarsMu.Lock()
	defer s.exemplarsMu.Unlock()
	if s.exemplars == nil {
		return nil
	}
	last := s.exemplars
	s.setBytes(&s.exemplarBytes, 0)
	s.exemplars = functionmetrics.NewExemplars(s.metricSettings)
	return last
}

// keepExemplars adds exemplars to those of the interval that has begun.
func (s *sums) keepExemplars(all *functionmetrics.Exemplars) {
	s.exemplarsMu.Lock()
	defer s.exemplarsMu.Unlock()
	s.exemplars.Add(all)
	s.setBytes(&s.exemplarBytes, s.exemplars.Bytes())
}

// takeMetrics returns the points of all series at a moment. isComplete: the sums contain the calls of all exemplars.
func (s *sums) takeMetrics(now functionmetrics.Moment, exemplars *functionmetrics.Exemplars, isComplete bool) pmetric.Metrics {
	s.lock()
	defer s.unlock()
	if !isComplete {
		s.keepExemplars(s.metrics.TakeUnknown(exemplars))
	}
	if s.isHurried.Swap(false) {
		s.metrics.Hurry()
	}
	return s.metrics.Interval(now, exemplars)
}

// noteAnswered notes that the next component has answered the metrics of all intervals up to a monotonic time.
func (s *sums) noteAnswered(until time.Duration) {
	s.lock()
	defer s.unlock()
	s.metrics.Answered(until)
}

// takeGrowth returns the growth of call paths since the last call, and begins a new one. The memory of the former is
// held from now on.
func (s *sums) takeGrowth() *pathprofiles.Growth {
	s.lock()
	defer s.unlock()
	last := s.growth
	s.hold(last.Bytes())
	s.growth = pathprofiles.NewGrowth(s.profileSettings)
	return last
}
