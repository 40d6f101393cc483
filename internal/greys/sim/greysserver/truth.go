// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"maps"
	"time"
)

// Count sums the calls of a method.
type Count struct {
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
	// Time is the total duration of the calls.
	Time time.Duration `json:"nanoseconds"`
}

func (c *Count) add(other Count) {
	c.Calls += other.Calls
	c.Failed += other.Failed
	c.Time += other.Time
}

// Counts are sums by method.
type Counts map[MethodName]Count

func (c Counts) add(name MethodName, count Count) {
	sum := c[name]
	sum.add(count)
	c[name] = sum
}

// Sum returns the sum over all methods.
func (c Counts) Sum() (sum Count) {
	for _, count := range c {
		sum.add(count)
	}
	return sum
}

// Truth has the real counts of one life of the process. It can be written as JSON.
type Truth struct {
	ProcessID int64 `json:"process_id"`
	// Made are the calls of the program. Reported are the calls that monitors reported to clients in replies without a
	// fault; a call that two monitors reported counts twice.
	Made     Counts `json:"made"`
	Reported Counts `json:"told"`
	// Rests means that the program has made all its calls.
	Rests bool `json:"rests"`
	// Trees, Stacks and Records count the ones that clients received in replies without a fault.
	Trees   int64 `json:"trees"`
	Stacks  int64 `json:"stacks"`
	Records int64 `json:"records"`
	// Missed counts events that were dropped because a client was too slow.
	Missed int64 `json:"missed"`
	// LostLines counts lines that arrived at a console while a command ran.
	LostLines int64 `json:"lost_lines"`
	// Recorded counts recorded calls.
	Recorded int64 `json:"recorded"`
	// Resets counts class resets. Enhanced is the number of instrumented classes.
	Resets   int64 `json:"resets"`
	Enhanced int64 `json:"enhanced"`
}

func (t *Truth) clone() Truth {
	c := *t
	c.Made, c.Reported = maps.Clone(t.Made), maps.Clone(t.Reported)
	return c
}
