// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "sync/atomic"

// Counts are what a guard has counted since it began.
type Counts struct {
	// Agents have said hello and were taken; TurnedAway were started to run untraced;
	// Refused are connections that were none of an agent, or not wanted.
	Agents, TurnedAway, Refused atomic.Uint64
	// Evicted are connections that were closed before they said what they are, because new
	// ones needed their place.
	Evicted atomic.Uint64
	// Passed are call events and markers that were passed to a collector, or wait for it;
	// Dropped those that came while there was none, or from before its run; Bytes what
	// came on data connections.
	Passed, Dropped, Bytes atomic.Uint64
	// LostBytes waited here for a collector that was lost, or that the guard could not wait
	// for: what had been written, and was not read there, is not among them. Forgotten are
	// names that had to go.
	LostBytes, Forgotten atomic.Uint64
	// GaveWay is how often an agent's link was given up, or its names were forgotten, because all
	// agents together held as much as they may, and it the most.
	GaveWay atomic.Uint64
	// ClassReports are what agents said of classes while there was no collector: these are
	// dropped.
	ClassReports atomic.Uint64
	// Suspensions is how often agents were told to suspend.
	Suspensions atomic.Uint64
	// Untraced is for how long agents were suspended because their collector was too slow, or
	// there was none, in nanoseconds, of all agents together. State brings it up to now.
	Untraced atomic.Int64
	// Stalls is how often a collector took too little, so that the agent was told, Runs how many runs were
	// begun at collectors, and Losses how many of them were lost.
	Stalls, Runs, Losses atomic.Uint64
	// BadData is how often an agent has sent what can't be read.
	BadData atomic.Uint64
}

// State is how things stand.
type State struct {
	// Agents are there; Connected have a collector, and Stalled of them are held: suspended
	// until it has taken what waits, because it took too little or because a run begins.
	Agents, Connected, Stalled int
	// Waiting is how many bytes wait for collectors; Names how many are remembered of
	// names.
	Waiting, Names int
}
