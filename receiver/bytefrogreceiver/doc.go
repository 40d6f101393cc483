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
// (connection.go), handshake.go finds out what they are, and refusal.go refuses them. A control
// connection (control.go) becomes a run (run.go), with an ID from registry.go; controlreader.go
// reads it. data.go reads a data
// connection, one of those in dataconnections.go: input.go has the bytes, batching.go
// decodes events, gives them their names (names.go, namecache.go, identify.go; pending.go
// for those that come later) and packs them; renames.go says from which number a thread
// is called otherwise, and tidings.go tells it with the batches of all connections.
// handover.go says how the batches, which traces.go makes spans of, are given to the
// pipeline, which internal/receiverkit/handover does. logs.go and metrics.go are ways of their own.
// memory.go counts what runs and connections make the receiver hold, in the budget of the
// process (internal/componentkit/budget), and says when a run has to leave.
//
// What connections of a run have to know of each other: sequence.go and clock.go
// make 32 bit numbers and times long ones, barriers.go has the breaks that batches
// carry, pacing.go (in numbers), lead.go (in time) and caughtup.go see that no connection
// gets too far ahead.
//
// # The conversation with an agent
//
// internal/bytefrog/hq decides which commands an agent gets, and agent.go sends them, as while
// the pipeline refuses batches. steering.go carries out the commands of people, which arrive
// through the extension agent_control. life.go does everything that no message of the agent
// causes: it reports that the run is alive (keepalive.go), and warns of a high call rate
// (ratewatch.go).
//
// Every end of a run (ending.go) goes through the steps of farewell.go. The connections that the
// agent has not closed then linger (linger.go). An agent that is not wanted is turned away
// (turnaway.go). The times that agents need are in timing.go.
//
// environment.go has what all runs share.
//
// telemetry.go counts.
package bytefrogreceiver
