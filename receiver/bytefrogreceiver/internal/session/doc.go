// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package session is the session of the receiver with one agent: a run, from the agent's hello until its
// last data is delivered. It knows what the messages of the protocol mean to each other. It knows no
// listener, no other sessions, and no log records and metrics.
//
// # Goroutines
//
// The goroutines of a session share a run (run.go). Each has a type of its own:
//
//   - controlReader reads the control connection, in the caller of Serve.
//   - dataConnection (data.go) reads one data connection and packs its events, in the caller of Join. With
//     max_block, the pipeline is called in that goroutine, and a coroutine reads.
//   - live does everything that no message of the agent causes: keepAlive reports that the run is alive,
//     rateWatch warns of a high call rate, and farewell ends the run.
//
// Operators' commands (commands.go) run in the goroutines of the extension agent_control.
//
// # State
//
// Each part of a run has a type for many goroutines: lifetime has the start and the ending (ending.go),
// control the control connection, dataConnections the set of data connections, agent the state of the
// agent and its commands (package hq decides which ones it gets), breaks the breaks of the data, batches
// the delivery, holdUp the last hold-up, and classes the reports about classes.
package session
