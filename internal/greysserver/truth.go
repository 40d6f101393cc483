// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"maps"
	"time"
)

// Count is what there was of calls of a method.
type Count struct {
	Calls, Failed int64
	// Time is that of all of them.
	Time time.Duration
}

func (c *Count) add(other Count) {
	c.Calls += other.Calls
	c.Failed += other.Failed
	c.Time += other.Time
}

// Counts are by method.
type Counts map[MethodName]Count

func (c Counts) add(name MethodName, count Count) {
	sum := c[name]
	sum.add(count)
	c[name] = sum
}

// Truth is what happened in one life of the process.
type Truth struct {
	ProcessID int64
	// Made are the calls of the program, and Told those that clients were told of by monitors
	// in replies without a fault: twice, where two monitors had them.
	Made, Told Counts
	// Rests says that the program has made all its calls.
	Rests bool
	// Trees, Stacks and Records are how many of them clients were told in replies without a
	// fault.
	Trees, Stacks, Records int64
	// Missed are those that a client was too slow for.
	Missed int64
	// LostLines are those that consoles were sent while a command ran.
	LostLines int64
	// Recorded is how many calls were recorded.
	Recorded int64
	// Resets is how many classes were reset, and Enhanced how many have something in them that
	// a command put there.
	Resets, Enhanced int64
}

func (t *Truth) clone() Truth {
	c := *t
	c.Made, c.Told = maps.Clone(t.Made), maps.Clone(t.Told)
	return c
}
