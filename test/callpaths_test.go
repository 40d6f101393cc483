// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"sync"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// The expected content of downloads and pages of call trees for a capture, computed from its bytes
// alone.

// sampleTypes are those of calls. values are the values of a path, or a sum of paths', in each: the
// number of calls, that of failed ones, and their own time.
var sampleTypes = []string{"calls", "errors", "time"}

type values [3]int64

func (v *values) add(w values) {
	for i := range v {
		v[i] += w[i]
	}
}

// callPath is a path of calls: a function, and the path that called it, by its number, or -1.
type callPath struct {
	caller int
	name   string
	values values
}

// callPaths are the paths of a capture; callers are before callees.
type callPaths []callPath

var pathsOfCaptures sync.Map

// pathsOf are the paths of a capture.
func pathsOf(t testing.TB, name string) callPaths {
	t.Helper()
	if known, ok := pathsOfCaptures.Load(name); ok {
		return known.(callPaths)
	}
	paths := pathsOfSpans(reference.Spans(openCapture(t, name), defaultRules).Spans, false)
	pathsOfCaptures.Store(name, paths)
	return paths
}

// pathsOfSpans are the paths of calls. areBeside: a truncated call counts beside the path on which its
// callees are, as in sums of calls that count when they end. Otherwise its callees are below it.
func pathsOfSpans(spans map[int64]*reference.Span, areBeside bool) (paths callPaths) {
	called := map[int64]int64{} // the time of a call's callees
	for _, s := range spans {
		called[s.Parent] += s.End - s.Start
	}
	type key struct {
		caller int
		name   string
	}
	var (
		numbers = map[key]int{}
		placed  = map[int64]int{-1: -1} // calls, by where they are
		place   func(sequence int64) int
	)
	numberOf := func(at key) int {
		number, ok := numbers[at]
		if !ok {
			number = len(paths)
			numbers[at] = number
			paths = append(paths, callPath{caller: at.caller, name: at.name})
		}
		return number
	}
	place = func(sequence int64) int {
		if number, ok := placed[sequence]; ok {
			return number
		}
		s := spans[sequence]
		name := shownName(s)
		if areBeside {
			name = reference.Qualified(s.Function)
		}
		placed[sequence] = numberOf(key{place(s.Parent), name})
		return placed[sequence]
	}
	for _, s := range spans {
		own := values{1, 0, max(0, s.End-s.Start-called[s.Sequence])}
		if s.Unwound {
			own[1] = 1
		}
		number := place(s.Sequence)
		if areBeside && s.Truncated != "" {
			number = numberOf(key{paths[number].caller, shownName(s)})
		}
		paths[number].values.add(own)
	}
	return paths
}

// shownName is how a call's function is called in downloads.
func shownName(s *reference.Span) string {
	if s.Truncated != "" {
		return reference.Qualified(s.Function) + " (truncated)"
	}
	return reference.Qualified(s.Function)
}

// byFunction are the sums of values by the function that paths end in, and by each that is on
// them, as pprof counts: there a call is once, however often the function is on its path.
func (paths callPaths) byFunction() (flat, cum map[string]*values) {
	flat, cum = map[string]*values{}, map[string]*values{}
	of := func(sums map[string]*values, name string) *values {
		if sums[name] == nil {
			sums[name] = &values{}
		}
		return sums[name]
	}
	for _, p := range paths {
		of(flat, p.name).add(p.values)
		counted := map[string]bool{}
		for at := &p; ; at = &paths[at.caller] {
			if !counted[at.name] {
				counted[at.name] = true
				of(cum, at.name).add(p.values)
			}
			if at.caller < 0 {
				break
			}
		}
	}
	return flat, cum
}

// stacks are the values by the names on the path, between semicolons, as in folded stacks. Paths
// without values are left out.
func (paths callPaths) stacks() map[string]values {
	stacks, texts := map[string]values{}, make([]string, len(paths))
	for i, p := range paths {
		texts[i] = strings.ReplaceAll(p.name, " ", "_")
		if p.caller >= 0 {
			texts[i] = texts[p.caller] + ";" + texts[i]
		}
		if p.values != (values{}) {
			stacks[texts[i]] = p.values
		}
	}
	return stacks
}

// in returns the values of one sample type that are not 0.
func in[Of comparable](all map[Of]values, sampleType int) map[Of]int64 {
	some := map[Of]int64{}
	for of, v := range all {
		if v[sampleType] != 0 {
			some[of] = v[sampleType]
		}
	}
	return some
}

// assertSame fails unless both have the same, and shows the first that they differ in.
func assertSame[V comparable](t *testing.T, want, got map[string]V) {
	t.Helper()
	const shown = 5
	differ := 0
	say := func(format string, values ...any) {
		if differ++; differ <= shown {
			t.Errorf(format, values...)
		}
	}
	for of, w := range want {
		if g, there := got[of]; !there {
			say("%s: expected %v, it is missing", of, w)
		} else if g != w {
			say("%s: expected %v, got %v", of, w, g)
		}
	}
	for of, g := range got {
		if _, wanted := want[of]; !wanted {
			say("%s: not expected, got %v", of, g)
		}
	}
	if differ > shown {
		t.Errorf("%d of %d differ", differ, len(want))
	}
}
