// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package functionmetrics

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/origin"
	"github.com/callbraid/callbraid/internal/call/callsum"
)

// Settings are the settings of metrics.
type Settings struct {
	// MaxFunctions bounds the functions of all origins together. Each error type of a function
	// counts as one more. An origin has at most half of those that all others leave. MaxFunctions
	// also bounds the origins. All others are summed in series with the attribute otel.metric.overflow.
	MaxFunctions int
	// MaxNameBytes bounds the names of functions and error types; 0: there is no bound. A back end can write a
	// name many times. Those with longer names count as those beyond MaxFunctions.
	MaxNameBytes int
	// MaxBytes bounds the memory of the series together with the growth that is not in them yet and the
	// exemplars; 0: there is no bound. An origin has at most half of the memory that all others leave.
	// Further functions, error types and origins count as those beyond MaxFunctions.
	MaxBytes int
	// Expiration is the time for which the last points of an origin without streams are sent again, unless
	// a bound is reached meanwhile.
	Expiration time.Duration
	// Folded receives the numbers of calls that were summed without their function, error type or origin,
	// because of MaxFunctions, of MaxNameBytes and of MaxBytes. It may be nil.
	Folded func(functions, names, bytes uint64)
}

// bound is a bound of the settings. A bound is full if another function, error type or origin does not fit. Its calls count in
// the rest of its series.
type bound int

const (
	noBound bound = iota
	maxFunctions
	maxNameBytes
	maxBytes
	bounds
)

// shared is what all series share.
type shared struct {
	settings Settings
	// functions counts what MaxFunctions bounds.
	functions int
	// last is the time of the last interval.
	last  pcommon.Timestamp
	bytes int
	// reserved is the memory that series can still need when a bound is full: for their rests and histograms.
	reserved int
	// wasFull: a bound was full since the last interval.
	wasFull bool
	// folded are the calls that were counted in rests since the last merge, by the bound that was full.
	folded [bounds]uint64
}

// maxSeriesBytes bounds the memory of series. A quarter of MaxBytes is for growth that is not in them yet, and
// an eighth for exemplars.
func (s *Settings) maxSeriesBytes() int {
	if s.MaxBytes == 0 {
		return math.MaxInt
	}
	return s.MaxBytes - s.MaxBytes/4 - s.MaxBytes/8
}

// full returns the bound that is full for another function or origin, if there are so many, and its origin has
// own of them. Its memory is bytes, and its origin has ownBytes.
func (m *shared) full(number, own, bytes, ownBytes int) bound {
	full := noBound
	switch {
	case own >= m.settings.MaxFunctions-number:
		full = maxFunctions
	case ownBytes+bytes > m.settings.maxSeriesBytes()-m.bytes-m.reserved:
		full = maxBytes
	}
	m.wasFull = m.wasFull || full != noBound
	return full
}

// Exemplar is a call with a span.
type Exemplar struct {
	TraceID  pcommon.TraceID
	SpanID   pcommon.SpanID
	Duration time.Duration
	// Time is the end of the call.
	Time pcommon.Timestamp
}

// series are the series of one origin.
type series struct {
	origin *origin.Origin
	start  pcommon.Timestamp
	// ended is the first interval without streams, and final the first one whose points end the series, by Moment.Elapsed; 0: none.
	ended, final time.Duration
	// isSent: points with the start time were made. isAnswered: see Metrics.Answered. mustEnd: the series have no streams and no
	// more time. They end as soon as isAnswered is true too. A stream that opens clears all three times and both flags.
	isSent, isAnswered, mustEnd bool
	// isRest: all calls are in the rest.
	isRest bool
	// streams counts the open streams.
	streams int
	// functions and outcomes are in the order of their first calls.
	functions  []function
	outcomes   []outcome
	functionAt map[string]int
	outcomeAt  map[outcomeKey]int
	// rest is the index of the outcome for all calls that did not fit, or none.
	rest int
	// restFull is the bound that was full when the rest was used last.
	restFull bound
	// counted is the part of shared.functions, bytes that of shared.bytes beside the origin, and reserved that of
	// shared.reserved.
	counted, bytes, reserved int
	// durations are the points of the current interval, one for each outcome, if they have values. counts
	// are those of functions with calls.
	durations pmetric.ExponentialHistogramDataPointSlice
	counts    pmetric.NumberDataPointSlice
}

// none is no index.
const none = -1

// function has the calls of a function.
type function struct {
	name   string
	isRest bool
	// since is the start time, if it is later than that of the series.
	since pcommon.Timestamp
	calls uint64
	// point is the index of its point in the counts of the current interval.
	point int
}

// outcome has the calls of a function that ended in one way.
type outcome struct {
	outcomeKey
	function int
	since    pcommon.Timestamp
	calls    uint64
	// errors are those of the calls that an exception left.
	errors uint64
	// seconds and nanoseconds are the sum of the durations. Recursive functions of many threads
	// exceed 2^63 ns in some months.
	seconds, nanoseconds int64
	histogram            callsum.Histogram
}

// outcomeKey identifies an outcome. errorType is empty if the calls returned.
type outcomeKey struct{ function, errorType string }

// failedKey is the key of calls that an exception left.
func failedKey(function, errorType string) outcomeKey {
	if errorType == "" {
		errorType = otherError
	}
	return outcomeKey{function, errorType}
}

// Approximate memory beside texts and buckets, with the places in slices and maps.
const (
	bytesOfSeries   = 400
	bytesOfFunction = 110
	bytesOfOutcome  = 270
	bytesOfBucket   = 8
	// mostBytesOfHistogram are those of 160 buckets, with the places that a slice has more.
	mostBytesOfHistogram = 256 * bytesOfBucket
	// bytesOfRest is the memory of the rest.
	bytesOfRest = bytesOfFunction + bytesOfOutcome + mostBytesOfHistogram
)

func (s *series) isEmpty() bool { return len(s.outcomes) == 0 }

// merge adds the growth of a stream. full is the bound that was full for the origin of the stream.
func (s *series) merge(m *shared, i *callsum.Increment, full bound) {
	if s.isRest {
		s.restFull = full
	}
	for n := range i.ByFunction {
		sum := &i.ByFunction[n]
		key := outcomeKey{function: i.Functions[sum.Function].Qualified}
		if sum.Failed {
			key = failedKey(key.function, i.Exceptions[sum.Exception])
		}
		s.add(m, key, sum)
	}
}

// add adds the calls of an outcome, or counts them in the rest. So for each metric, each call counts in one series.
func (s *series) add(m *shared, key outcomeKey, sum *callsum.FunctionSum) {
	at, known := s.outcomeAt[key]
	in := 0
	if known {
		in = s.outcomes[at].function
	} else {
		in = s.function(m, key.function)
		at = s.outcome(m, key, in)
	}
	if at == s.rest {
		m.folded[s.restFull] += sum.Calls
	}
	s.functions[in].calls += sum.Calls
	o := &s.outcomes[at]
	o.calls += sum.Calls
	if sum.Failed {
		o.errors += sum.Calls
	}
	o.nanoseconds += sum.Sum % int64(time.Second)
	o.seconds += sum.Sum/int64(time.Second) + o.nanoseconds/int64(time.Second)
	o.nanoseconds %= int64(time.Second)
	before := cap(o.histogram.Counts)
	o.histogram.Merge(&sum.Histogram)
	buckets := bytesOfBucket * (cap(o.histogram.Counts) - before)
	s.grow(m, buckets)
	s.reserve(m, -buckets)
}

// function returns the index of a function, or that of the rest.
func (s *series) function(m *shared, name string) int {
	if at, ok := s.functionAt[name]; ok {
		return at
	}
	// A function needs an outcome too.
	if s.isFull(m, name, bytesOfFunction+bytesOfOutcome+mostBytesOfHistogram) {
		return s.outcomes[s.restOf(m)].function
	}
	m.functions++
	s.counted++
	name = strings.Clone(name)
	s.functionAt[name] = len(s.functions)
	s.functions = append(s.functions, function{name: name, since: s.since(m)})
	s.grow(m, bytesOfFunction+len(name))
	return len(s.functions) - 1
}

// outcome returns the index of an outcome of a function, or that of the rest.
func (s *series) outcome(m *shared, key outcomeKey, in int) int {
	if s.functions[in].isRest || key.errorType != "" && s.isFull(m, key.errorType, bytesOfOutcome+mostBytesOfHistogram) {
		return s.restOf(m)
	}
	if key.errorType != "" {
		m.functions++
		s.counted++
	}
	key = outcomeKey{s.functions[in].name, strings.Clone(key.errorType)}
	s.outcomeAt[key] = len(s.outcomes)
	s.outcomes = append(s.outcomes, outcome{outcomeKey: key, function: in, since: s.since(m)})
	s.grow(m, bytesOfOutcome+len(key.errorType))
	s.reserve(m, mostBytesOfHistogram)
	return len(s.outcomes) - 1
}

// restOf returns the index of the rest, which it may make.
func (s *series) restOf(m *shared) int {
	if s.rest == none {
		s.rest = len(s.outcomes)
		s.outcomes = append(s.outcomes, outcome{function: len(s.functions)})
		s.functions = append(s.functions, function{isRest: true})
		s.grow(m, bytesOfFunction+bytesOfOutcome)
		s.reserve(m, -bytesOfFunction-bytesOfOutcome)
	}
	return s.rest
}

// isFull reports whether a bound is full for a function or an error type with a name and so many bytes beside it.
// s.restFull is then that bound.
func (s *series) isFull(m *shared, name string, bytes int) bool {
	switch longest := m.settings.MaxNameBytes; {
	case s.isRest:
	case longest > 0 && len(name) > longest:
		s.restFull = maxNameBytes
	default:
		s.restFull = m.full(m.functions, s.counted, bytes+len(name), s.bytes+s.reserved)
	}
	return s.restFull != noBound
}

// since returns the start time of a new series; 0: that of all. Calls from before the last interval
// may be in the rest.
func (s *series) since(m *shared) pcommon.Timestamp {
	if s.rest == none {
		return 0
	}
	return m.last
}

func (s *series) grow(m *shared, bytes int) {
	s.bytes += bytes
	m.bytes += bytes
}

func (s *series) reserve(m *shared, bytes int) {
	s.reserved += bytes
	m.reserved += bytes
}

// appendTo appends the points of all series. After the final ones, they have no value.
func (s *series) appendTo(metrics pmetric.Metrics, now pcommon.Timestamp) {
	of := metrics.ResourceMetrics().AppendEmpty()
	s.origin.Resource.CopyTo(of.Resource())
	// A schema URL of the scope would be a label in Prometheus.
	of.SetSchemaUrl(s.origin.ResourceSchemaURL)
	scope := of.ScopeMetrics().AppendEmpty()
	s.origin.Scope.CopyTo(scope.Scope())
	flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(s.final > 0)

	points := calls.appendSum(scope.Metrics(), len(s.functions))
	for i := range s.outcomes {
		// The clock can be set back after the interval at which series began.
		s.outcomes[i].since = min(s.outcomes[i].since, now)
	}
	for i := range s.functions {
		f := &s.functions[i]
		if f.calls == 0 {
			continue
		}
		f.point, f.since = points.Len(), min(f.since, now)
		p := s.appendNumber(points, f.calls, f.since, now, flags)
		putFunction(p.Attributes(), f, "")
	}
	s.appendErrors(scope.Metrics(), now, flags)
	durations := duration.appendHistogram(scope.Metrics(), len(s.outcomes))
	for i := range s.outcomes {
		o := &s.outcomes[i]
		p := durations.AppendEmpty()
		p.SetStartTimestamp(max(s.start, o.since))
		p.SetTimestamp(now)
		p.SetFlags(flags)
		putFunction(p.Attributes(), &s.functions[o.function], o.errorType)
		if s.final == 0 {
			o.setValues(p)
		}
	}
	if s.final > 0 {
		separatePoints(scope.Metrics())
	} else {
		s.durations, s.counts = durations, points
	}
}

// separatePoints moves points without a value into metrics of their own. The exporter prometheus ends the
// series of the first such point of a metric, and ignores all further ones.
func separatePoints(metrics pmetric.MetricSlice) {
	for i := range metrics.Len() {
		m, first := metrics.At(i), true
		isFurther := func() bool {
			further := !first
			first = false
			return further
		}
		d := definition{m.Name(), m.Unit(), m.Description()}
		if m.Type() == pmetric.MetricTypeSum {
			m.Sum().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool {
				further := isFurther()
				if further {
					p.MoveTo(d.appendSum(metrics, 1).AppendEmpty())
				}
				return further
			})
			continue
		}
		m.ExponentialHistogram().DataPoints().RemoveIf(func(p pmetric.ExponentialHistogramDataPoint) bool {
			further := isFurther()
			if further {
				p.MoveTo(d.appendHistogram(metrics, 1).AppendEmpty())
			}
			return further
		})
	}
}

// appendErrors appends the metric of errors, if there are any.
func (s *series) appendErrors(metrics pmetric.MetricSlice, now pcommon.Timestamp, flags pmetric.DataPointFlags) {
	failed := 0
	for i := range s.outcomes {
		if s.outcomes[i].errors > 0 {
			failed++
		}
	}
	if failed == 0 {
		return
	}
	points := failures.appendSum(metrics, failed)
	for i := range s.outcomes {
		if o := &s.outcomes[i]; o.errors > 0 {
			p := s.appendNumber(points, o.errors, o.since, now, flags)
			putFunction(p.Attributes(), &s.functions[o.function], o.errorType)
		}
	}
}

func (s *series) appendNumber(points pmetric.NumberDataPointSlice, value uint64, since, now pcommon.Timestamp, flags pmetric.DataPointFlags) pmetric.NumberDataPoint {
	p := points.AppendEmpty()
	p.SetStartTimestamp(max(s.start, since))
	p.SetTimestamp(now)
	p.SetFlags(flags)
	if s.final == 0 {
		p.SetIntValue(int64(value))
	}
	return p
}

func putFunction(to pcommon.Map, f *function, errorType string) {
	if f.isRest {
		to.PutBool(attributeOverflow, true)
		return
	}
	n := 1
	if errorType != "" {
		n++
	}
	to.EnsureCapacity(n)
	to.PutStr(attributeFunction, f.name)
	if errorType != "" {
		to.PutStr(attributeErrorType, errorType)
	}
}

// setValues sets the values of a histogram. Its durations are above 0.
func (o *outcome) setValues(p pmetric.ExponentialHistogramDataPoint) {
	p.SetCount(o.calls)
	p.SetSum(float64(o.seconds) + time.Duration(o.nanoseconds).Seconds())
	h := o.histogram.Trimmed()
	p.SetScale(h.Scale)
	p.Positive().SetOffset(h.Offset)
	p.Positive().BucketCounts().FromRaw(h.Counts)
}

// attach attaches an exemplar to the points of its outcome and of its function, or to those of the rest.
// A point has at most one: the latest. The number of calls has it too, because the text formats of Prometheus
// have exemplars of counters, and none of native histograms.
func (s *series) attach(key outcomeKey, exemplar Exemplar) {
	at, ok := s.outcomeAt[key]
	if !ok {
		at = s.rest
	}
	if at == none || s.durations == (pmetric.ExponentialHistogramDataPointSlice{}) {
		return
	}
	if e, isLatest := exemplar.latestOf(s.durations.At(at).Exemplars()); isLatest {
		e.SetDoubleValue(exemplar.Duration.Seconds())
	}
	// A function counts its calls whose error type is in the rest.
	in, ok := s.functionAt[key.function]
	if !ok {
		in = s.outcomes[at].function
	}
	if s.functions[in].calls == 0 {
		return
	}
	if e, isLatest := exemplar.latestOf(s.counts.At(s.functions[in].point).Exemplars()); isLatest {
		e.SetIntValue(1)
	}
}

// latestOf makes the exemplar that of a point, without its value, unless the point has a later one.
func (x *Exemplar) latestOf(point pmetric.ExemplarSlice) (e pmetric.Exemplar, isLatest bool) {
	if point.Len() == 0 {
		point.AppendEmpty()
	} else if point.At(0).Timestamp() >= x.Time {
		return e, false
	}
	e = point.At(0)
	e.SetTraceID(x.TraceID)
	e.SetSpanID(x.SpanID)
	e.SetTimestamp(x.Time)
	return e, true
}
