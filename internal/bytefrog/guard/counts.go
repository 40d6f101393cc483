// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import "sync/atomic"

// Counts are the counts of a guard since its start.
type Counts struct {
	// Agents have sent hello and were accepted; TurnedAway were started to run untraced; Refused are
	// connections that no agent opened, or that were not wanted.
	Agents, TurnedAway, Refused atomic.Uint64
	// Evicted are connections that were closed before their first message, because new ones needed
	// their place.
	Evicted atomic.Uint64
	// Passed are call events and markers that were passed to a collector, or wait for it; Dropped
	// those that arrived while there was none, or from before its run; Bytes all bytes on data
	// connections.
	Passed, Dropped, Bytes atomic.Uint64
	// LostBytes waited in the guard for a collector that was lost, or that the guard could not wait
	// for. Bytes that were written, and not read there, are not among them. Forgotten are names that
	// were evicted.
	LostBytes, Forgotten atomic.Uint64
	// GaveWay is how often an agent's link was given up, or its names were evicted, because all agents
	// together held too much, and it most.
	GaveWay atomic.Uint64
	// ClassReports are class reports that were dropped because there was no collector.
	ClassReports atomic.Uint64
	// Suspensions is how often agents were sent suspend.
	Suspensions atomic.Uint64
	// Untraced is for how long agents were suspended because their collector was too slow, or
	// there was none, in nanoseconds, of all agents together. State brings it up to now.
	Untraced atomic.Int64
	// Stalls is how often an agent was suspended because its collector read too slowly, Runs how many
	// runs were begun at collectors, and Losses how many of them were lost.
	Stalls, Runs, Losses atomic.Uint64
	// BadData is how often an agent has sent bad data.
	BadData atomic.Uint64
}

// State is the state of a guard at a moment.
type State struct {
	// Agents is the number of agents; Connected of them have a collector, and Stalled of those are
	// held: suspended until the collector has read all waiting data, because it read too slowly or
	// because a run begins.
	Agents, Connected, Stalled int
	// Waiting is how many bytes wait for collectors; Names how many bytes the remembered names take.
	Waiting, Names int
}
