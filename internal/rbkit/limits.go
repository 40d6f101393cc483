// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

// Limits bound what a message may have. Everything else is bounded by its size: nothing
// is stored of it here. A field that is 0 has its default.
type Limits struct {
	Frames int // of a stack; default 4096, more than twice what servers send
	Stats  int // of the statistics; default 256
}

const (
	defaultFrames = 4096
	defaultStats  = 256
)

func (l Limits) withDefaults() Limits {
	if l.Frames <= 0 {
		l.Frames = defaultFrames
	}
	if l.Stats <= 0 {
		l.Stats = defaultStats
	}
	return l
}
