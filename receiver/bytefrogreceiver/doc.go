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
// reads it. data.go reads a data connection, one of those in dataconnections.go. internal/bytefrog/connreader
// has the received bytes. internal/stream names the events, packs them into batches, and owns all that
// connections of a run share for it.
// handover.go says how the batches, which traces.go makes spans of, are given to the
// pipeline, which internal/receiverkit/handover does. logs.go and metrics.go are ways of their own.
// memory.go counts the memory of connections, and internal/runmemory that of a run, in the
// budget of the process (internal/componentkit/budget).
//
// internal/pace keeps the data connections of a run near to each other, and awaitcontrol.go has a
// batch wait for breaks on the control connection.
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
