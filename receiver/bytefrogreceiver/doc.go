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
// (internal/call/callevent), and keeps no call stacks.
//
// # The way of the data
//
// config.go, with validate.go, and factory.go are what an operator sees; receiver.go is
// the life of the receiver, which shutdown.go ends. accept.go takes connections
// (connection.go), handshake.go finds out what they are. A control connection becomes a
// run (run.go), with a number from registry.go; control.go reads it. data.go reads a data
// connection, one of those in dataconnections.go: input.go has the bytes, and internal/stream
// names the events, packs them into batches, and owns all that connections of a run share for it.
// handover.go says how the batches, which traces.go makes spans of, are given to the
// pipeline, which internal/receiverkit/handover does. logs.go and metrics.go are ways of their own.
// memory.go counts the memory of connections, and internal/runmemory that of a run, in the
// budget of the process (internal/componentkit/budget).
//
// internal/pace keeps the data connections of a run near to each other, and awaitcontrol.go
// has a batch wait for breaks on the control connection.
// tracing.go, by what suspension.go remembers, suspends an agent while the pipeline refuses, and keep.go says
// that a run is alive. steering.go, where the extension agent_control is, has an agent do
// what somebody wants, of which the agent gives signs (signs.go).
//
// Every end of a run (ending.go) goes through leave.go, in the steps of farewell.go;
// what an agent has open then lingers (linger.go). One that is not wanted is turned
// away (turnaway.go). The times that agents need are in timing.go.
//
// telemetry.go counts.
package bytefrogreceiver
