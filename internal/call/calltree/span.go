// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// TraceID and SpanID are those of OpenTelemetry.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// Origin is the program that made calls, or was sampled.
type Origin struct {
	Service string
	// Instance distinguishes threads of one ID.
	Instance string
}

// Span is a call that ended, or repeated calls of one caller.
type Span struct {
	Trace TraceID
	// ID is zero if it is not known. Then the callees are not known either.
	ID SpanID
	// Parent is the caller, and ParentTrace its trace, which can be another one if a trace was
	// cut; zero: no caller.
	ParentTrace TraceID
	Parent      SpanID
	// Remote: the caller is in another service.
	Remote bool

	Function string
	File     string
	Line     int64 // 0: not known
	// Start and End are nanoseconds since 1970. A call that ends before it starts, or lacks one
	// of them, has no time.
	Start, End uint64
	Error      bool
	Truncated  bool
	// Calls is the number of repeated calls; 0: one call. CallsTime is the sum of their times, because
	// other calls can be between them; 0: from Start to End.
	Calls     uint64
	CallsTime int64

	HasThread  bool
	Thread     int64
	ThreadName string
}

// duration is the time from the start to the end.
func (s *Span) duration() int64 {
	if s.Start == 0 || s.End < s.Start {
		return 0
	}
	return clamp(s.End - s.Start)
}

// count is the number of calls.
func (s *Span) count() uint64 { return max(1, s.Calls) }

// time is the time of the calls.
func (s *Span) time() int64 {
	if took := s.duration(); s.CallsTime <= 0 || s.CallsTime > took {
		return took
	}
	return s.CallsTime
}

func (s *Span) key() spanKey    { return newSpanKey(&s.Trace, &s.ID) }
func (s *Span) caller() spanKey { return newSpanKey(&s.ParentTrace, &s.Parent) }

// hasCaller reports whether the caller can be in the span's own tree.
func (s *Span) hasCaller() bool { return s.Parent != (SpanID{}) && !s.Remote }

// errorsOf is the number of errors of a span.
func errorsOf(s *Span) uint64 {
	if s.Error {
		return 1
	}
	return 0
}

// mark is Truncated or Plain.
func (s *Span) mark() Mark {
	if s.Truncated {
		return Truncated
	}
	return Plain
}

// areCalleesFirst reports whether spans arrive when their calls end. Then a caller mostly
// follows its last callee. Otherwise they arrive when their calls begin, and the first callee
// mostly follows its caller.
func areCalleesFirst(spans []Span) bool {
	ends := 0
	for i := 1; i < len(spans); i++ {
		if spans[i-1].Parent == spans[i].ID {
			ends++
		}
		if spans[i].Parent == spans[i-1].ID {
			ends--
		}
	}
	return ends > 0
}
