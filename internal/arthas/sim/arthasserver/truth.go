// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import "time"

// Count sums the calls of a method.
type Count struct {
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
	// Time is the total duration of the calls. In rows of monitors it includes the time since boot of calls in flight.
	Time time.Duration `json:"nanoseconds"`
}

// Counts are sums by qualified name of the method.
type Counts map[string]Count

func (c Counts) add(class, method string, of Count) {
	name := class + "." + method
	sum := c[name]
	sum.Calls, sum.Failed, sum.Time = sum.Calls+of.Calls, sum.Failed+of.Failed, sum.Time+of.Time
	c[name] = sum
}

// Sum returns the sum over all methods.
func (c Counts) Sum() (sum Count) {
	for _, of := range c {
		sum.Calls, sum.Failed, sum.Time = sum.Calls+of.Calls, sum.Failed+of.Failed, sum.Time+of.Time
	}
	return sum
}

// Truth has the real counts of one life of the program. It can be written as JSON.
type Truth struct {
	ProcessID int `json:"process_id"`
	// Made are the calls of the program. Reported are the calls in rows of monitors that a client received; a call that two
	// monitors reported counts twice.
	Made     Counts `json:"made"`
	Reported Counts `json:"told"`
	// Rests means that the program has made all its calls.
	Rests bool `json:"rests"`
	// Trees, Stacks, Watches and Records count the ones that clients received, in answers without a fault.
	Trees   int64 `json:"trees"`
	Stacks  int64 `json:"stacks"`
	Watches int64 `json:"watches"`
	Records int64 `json:"records"`
	// Profiles counts the starts of the profiler by clients, and ProfilesStopped those that clients stopped. Profiled is the sum
	// of the stacks that they received.
	Profiles        int64         `json:"profiles"`
	ProfilesStopped int64         `json:"profiles_stopped"`
	Profiled        time.Duration `json:"profiled_nanoseconds"`
	// Profiling means that the profiler runs.
	Profiling bool `json:"profiling"`
	// Dropped counts results that full queues dropped before a client received them.
	Dropped int64 `json:"dropped"`
	// Resets counts restored classes. Enhanced is the number of instrumented classes, and Sessions that of sessions that
	// clients opened and did not close.
	Resets   int64 `json:"resets"`
	Enhanced int64 `json:"enhanced"`
	Sessions int64 `json:"sessions"`
}

// count counts a result that a client received for the first time.
func (t *Truth) count(r result) {
	switch r["type"] {
	case "monitor":
		for _, row := range r["monitorDataList"].([]any) {
			of := row.(result)
			t.Reported.add(of["className"].(string), of["methodName"].(string), Count{
				Calls: int64(of["total"].(int)), Failed: int64(of["failed"].(int)), Time: time.Duration(of["cost"].(float64) * float64(time.Millisecond)),
			})
		}
	case "trace":
		t.Trees++
	case "stack":
		t.Stacks++
	case "watch":
		t.Watches++
	case "tt":
		if _, isList := r["timeFragmentList"]; isList {
			t.Records++
		}
	}
}
