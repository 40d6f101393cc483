// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package bytefrogreceiver is the HQ of Bytefrog agents: it takes their
// connections, configures and starts them, reads their method calls, and hands
// them on as batches of call events, with markers and what agents say of
// themselves as logs, and the state of agents as metrics.
//
// It knows what the messages of the protocol mean to each other. It knows
// neither how they are laid out (internal/bytefrog) nor how a batch is
// (internal/callevent), and keeps no call stacks.
//
// # The way of the data
//
// accept.go takes connections, handshake.go finds out what they are. A control
// connection becomes a run (run.go), with a number from registry.go; control.go
// reads it. data.go reads a data connection: input.go has the bytes, batching.go
// decodes events, gives them their names (names.go, namecache.go; pending.go for
// those that come later) and packs them; handover.go says how the batches are given to
// the pipeline, which internal/handover does. logs.go and metrics.go are ways of their
// own.
//
// What connections of a run have to know of each other: sequence.go and clock.go
// make 32 bit numbers and times long ones, barriers.go has the breaks that batches
// carry, pacing.go and caughtup.go see that no connection gets too far ahead.
// tracing.go suspends an agent while the pipeline refuses, and keep.go says that a run
// is alive.
//
// Every end of a run (ending.go) goes through leave.go, in the steps of farewell.go;
// what an agent has open then lingers (linger.go). One that is not wanted is turned
// away (turnaway.go).
package bytefrogreceiver
