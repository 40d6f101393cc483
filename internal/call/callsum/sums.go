// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/keytable"
)

// Sums are the sums of the calls of one stream.
type Sums struct {
	settings *Settings
	// functions are those of the stream, as far as an increment needed them. It only grows.
	functions []*callevent.Function
	// returned are the calls that no exception left, by function.
	returned []functionSum
	// unwound are the calls that an exception left. byException finds their number plus 1 by
	// function and exception.
	unwound     []unwoundSum
	byException keytable.Table
	// histogramBytes is the memory of all histograms.
	histogramBytes int
	// calls is the number of calls since the last increment.
	calls int
	paths paths
}

// functionSum is the sum of the calls of a function that ended in one way.
type functionSum struct {
	calls     uint64
	sum       int64
	histogram Histogram
}

type unwoundSum struct {
	function, exception uint32
	functionSum
}

const (
	pointerBytes  = int(unsafe.Sizeof((*callevent.Function)(nil)))
	functionBytes = int(unsafe.Sizeof(functionSum{}))
	unwoundBytes  = int(unsafe.Sizeof(unwoundSum{}))
)

// New returns the sums of a stream without calls.
func New(settings *Settings) *Sums {
	return &Sums{settings: settings, paths: newPaths(settings)}
}

// Callee returns the path of a call of a function. caller is the path of its caller, or that of
// its lane.
func (s *Sums) Callee(caller, function uint32) uint32 {
	if !s.settings.By.paths() {
		return top
	}
	return s.paths.callee(caller, function)
}

// Lane returns the path for calls of a lane without a caller. The lane has the name now. known
// is the path that Lane returned for this lane before, or 0.
func (s *Sums) Lane(known uint32, id uint64, name string) uint32 {
	if !s.settings.By.paths() || !s.settings.ByThread {
		return top
	}
	return s.paths.lane(known, id, name)
}

// CountReturned counts a call that returned. Durations are in nanoseconds and above 0; callees
// is the time of the call's callees.
func (s *Sums) CountReturned(function, path uint32, duration, callees int64) {
	s.countByFunction(function, duration)
	s.countPath(path, 0, duration, callees)
}

// CountTruncated counts a call whose end was not seen.
func (s *Sums) CountTruncated(function, path uint32, duration, callees int64) {
	s.countByFunction(function, duration)
	if s.settings.By.paths() {
		path = s.paths.truncated(path)
	}
	s.countPath(path, 0, duration, callees)
}

// CountUnwound counts a call that an exception left.
func (s *Sums) CountUnwound(function, exception, path uint32, duration, callees int64) {
	s.calls++
	if s.settings.By.functions() {
		s.count(s.ofException(function, exception), duration)
	}
	s.countPath(path, 1, duration, callees)
}

// countByFunction counts a call of a function that no exception left.
func (s *Sums) countByFunction(function uint32, duration int64) {
	s.calls++
	if s.settings.By.functions() {
		s.count(s.of(function), duration)
	}
}

func (s *Sums) count(sum *functionSum, duration int64) {
	sum.calls++
	sum.sum = added(sum.sum, duration)
	s.histogramBytes += sum.histogram.add(duration)
}

func (s *Sums) countPath(path uint32, errors uint64, duration, callees int64) {
	if s.settings.By.paths() {
		s.paths.count(path, errors, duration, callees)
	}
}

// of returns the sum of the calls of a function that no exception left.
func (s *Sums) of(function uint32) *functionSum {
	if n := int(function) + 1; n > len(s.returned) {
		s.returned = append(s.returned, make([]functionSum, n-len(s.returned))...)
	}
	return &s.returned[function]
}

// ofException returns the sum of the calls of a function that an exception left.
func (s *Sums) ofException(function, exception uint32) *functionSum {
	key := uint64(function)<<32 | uint64(exception)
	number := s.byException.Find(key)
	if number == 0 {
		s.unwound = append(s.unwound, unwoundSum{function: function, exception: exception})
		number = uint32(len(s.unwound))
		s.byException.Put(key, number)
	}
	return &s.unwound[number-1].functionSum
}

// Functions is the number of functions that AddFunction has named.
func (s *Sums) Functions() int { return len(s.functions) }

// AddFunction names the next function.
func (s *Sums) AddFunction(f *callevent.Function) { s.functions = append(s.functions, f) }

// Take returns the growth since the last increment. All functions of the stream must have been
// added. exceptions are those of the stream, in a slice that only grows. If no call ended, the
// increment is empty.
func (s *Sums) Take(exceptions []string) Increment {
	if s.calls == 0 {
		return Increment{}
	}
	taken := Increment{
		Functions:  s.functions[:len(s.functions):len(s.functions)],
		Exceptions: exceptions[:len(exceptions):len(exceptions)],
		Lanes:      slices.Clone(s.paths.lanes),
		ByFunction: s.takeFunctions(),
	}
	if s.settings.By.paths() {
		taken.Paths, taken.Grown = s.paths.take()
	}
	s.calls = 0
	return taken
}

// takeFunctions returns the sums that have calls, and clears them.
func (s *Sums) takeFunctions() []FunctionSum {
	// A stream waits for this, so the sums are counted first, and not moved to a larger slice again and again.
	n := 0
	for i := range s.returned {
		if s.returned[i].calls > 0 {
			n++
		}
	}
	taken := make([]FunctionSum, 0, n+len(s.unwound))
	for function := range s.returned {
		taken = s.returned[function].moveTo(taken, FunctionSum{Function: uint32(function)})
	}
	for i := range s.unwound {
		u := &s.unwound[i]
		taken = u.moveTo(taken, FunctionSum{Function: u.function, Failed: true, Exception: u.exception})
	}
	buckets := 0
	for i := range taken {
		buckets += len(taken[i].Histogram.Counts)
	}
	// One slice has the counts of all histograms.
	all := make([]uint64, 0, buckets)
	for i := range taken {
		from, counts := len(all), taken[i].Histogram.Counts
		all = append(all, counts...)
		taken[i].Histogram.Counts = all[from:len(all):len(all)]
		clear(counts)
	}
	return taken
}

// moveTo appends the sum to taken if it has calls. The counts of the histogram are still those
// of f.
func (f *functionSum) moveTo(taken []FunctionSum, sum FunctionSum) []FunctionSum {
	if f.calls == 0 {
		return taken
	}
	sum.Calls, sum.Sum, sum.Histogram = f.calls, f.sum, f.histogram.Trimmed()
	f.calls, f.sum = 0, 0
	return append(taken, sum)
}

// ForgetIdlePaths forgets all paths if a quarter of them belong to no open call, and did not grow since the last call of
// ForgetIdlePaths. If there is no room for further paths, one such path is enough. It must follow Take, so no call is lost.
// open are the paths of open calls. If it reports true, the caller finds the paths of lanes and open calls again.
func (s *Sums) ForgetIdlePaths(open iter.Seq[uint32]) bool { return s.paths.forgetIdle(open) }

// Release returns the room of all paths to the other streams. The sums must not be used after
// it.
func (s *Sums) Release() { s.paths.release() }

// Bytes is about the memory of the sums.
func (s *Sums) Bytes() int {
	return cap(s.functions)*pointerBytes + cap(s.returned)*functionBytes + cap(s.unwound)*unwoundBytes +
		s.byException.Bytes() + s.histogramBytes + s.paths.bytes()
}
