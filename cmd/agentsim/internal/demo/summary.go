// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// truncatedMark is the end of the names of calls whose end was not seen.
const truncatedMark = " (truncated)"

// summary has the sums of all calls.
type summary struct {
	calls, errors, truncated uint64
	paths                    int
	methods                  map[string]*method // by name: overloaded ones are one method
}

// method has the sums of all calls of a method.
type method struct {
	name   string
	calls  uint64
	errors uint64
	// total is the time in the method and in methods that it called.
	total time.Duration
	// self is total without the time in methods that it called.
	self time.Duration
}

// fetchSummary adds up the profile of the first service's call tree.
func fetchSummary(ctx context.Context, pages string) (*summary, error) {
	address, err := serviceAddress(ctx, pages)
	if err != nil {
		return nil, err
	}
	address += "profile.pb.gz"
	data, err := fetch(ctx, address)
	if err != nil {
		return nil, err
	}
	of, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return newSummary(of)
}

// newSummary adds up a profile of a call tree. The first location of a sample is the called method.
func newSummary(of *profile.Profile) (*summary, error) {
	var at [3]int
	for i, name := range []string{"calls", "errors", "time"} {
		at[i] = slices.IndexFunc(of.SampleType, func(t *profile.ValueType) bool { return t.Type == name })
		if at[i] < 0 {
			return nil, fmt.Errorf("expected a profile with values of the type %s, got none", name)
		}
	}
	s := &summary{methods: map[string]*method{}}
	for _, path := range of.Sample {
		calls, errors, self := uint64(path.Value[at[0]]), uint64(path.Value[at[1]]), time.Duration(path.Value[at[2]])
		if calls > 0 {
			s.paths++
		}
		callers := map[*method]bool{}
		for i, location := range path.Location {
			name, isTruncated := strings.CutSuffix(location.Line[0].Function.Name, truncatedMark)
			m := s.method(name)
			if i == 0 {
				m.calls += calls
				m.errors += errors
				m.self += self
				if isTruncated {
					s.truncated += calls
				}
			}
			if !callers[m] { // a method that calls itself is there several times
				callers[m] = true
				m.total += self
			}
		}
		s.calls += calls
		s.errors += errors
	}
	return s, nil
}

func (s *summary) method(name string) *method {
	m, ok := s.methods[name]
	if !ok {
		m = &method{name: name}
		s.methods[name] = m
	}
	return m
}

// top returns the n methods with most self time.
func (s *summary) top(n int) []*method {
	all := slices.SortedFunc(maps.Values(s.methods), func(a, b *method) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	return all[:min(n, len(all))]
}
