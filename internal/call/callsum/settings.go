// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import "sync/atomic"

// By is what calls are summed by.
type By uint8

const (
	Functions By = iota
	Paths
	FunctionsAndPaths
)

func (b By) functions() bool { return b != Paths }
func (b By) paths() bool     { return b != Functions }

// Settings are the choices of sums. All streams share them, also from several goroutines.
type Settings struct {
	By By
	// ByThread: the calls of each lane have paths of their own.
	ByThread bool
	// MaxPaths bounds the call paths of all streams together. A stream has at most half of those
	// that all others leave. If it needs another one, it sums the calls at PathRest.
	MaxPaths int64

	// made is the number of paths of all streams, without their tops and rests.
	made atomic.Int64
}

// Made is the number of call paths of all streams that MaxPaths bounds.
func (s *Settings) Made() int64 { return s.made.Load() }

// reserve makes room for another path of a stream that has so many. It reports false if the stream
// has as many as are free, or if none is free.
func (s *Settings) reserve(has int64) bool {
	if has >= s.MaxPaths-s.made.Load() {
		return false
	}
	if s.made.Add(1) > s.MaxPaths {
		s.made.Add(-1)
		return false
	}
	return true
}
