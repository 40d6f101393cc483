// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"maps"
	"time"
)

// Count is what there was of calls of a method.
type Count struct {
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
	// Time is that of all of them.
	Time time.Duration `json:"nanoseconds"`
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

// Sum is all of them together.
func (c Counts) Sum() (sum Count) {
	for _, count := range c {
		sum.add(count)
	}
	return sum
}

// Truth is what happened in one life of the process. It can be written as JSON.
type Truth struct {
	ProcessID int64 `json:"process_id"`
	// Made are the calls of the program, and Told those that clients were told of by monitors
	// in replies without a fault: twice, where two monitors had them.
	Made Counts `json:"made"`
	Told Counts `json:"told"`
	// Rests says that the program has made all its calls.
	Rests bool `json:"rests"`
	// Trees, Stacks and Records are how many of them clients were told in replies without a
	// fault.
	Trees   int64 `json:"trees"`
	Stacks  int64 `json:"stacks"`
	Records int64 `json:"records"`
	// Missed are those that a client was too slow for.
	Missed int64 `json:"missed"`
	// LostLines are those that consoles were sent while a command ran.
	LostLines int64 `json:"lost_lines"`
	// Recorded is how many calls were recorded.
	Recorded int64 `json:"recorded"`
	// Resets is how many classes were reset, and Enhanced how many have something in them that
	// a command put there.
	Resets   int64 `json:"resets"`
	Enhanced int64 `json:"enhanced"`
}

func (t *Truth) clone() Truth {
	c := *t
	c.Made, c.Told = maps.Clone(t.Made), maps.Clone(t.Told)
	return c
}
