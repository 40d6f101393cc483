// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package lttngjulreceiver replaces LTTng's session daemon for the agents in Java and Python
// programs. It registers agents, lists their loggers, and enables and disables loggers. It
// delivers these events as log records and metrics. The records of the loggers themselves take
// another way: through the tracer to LTTng's own daemons.
//
// Package internal/session knows the order of messages and the commands that restore an agent. Package
// internal/lttng/lttngagent knows the layout of messages, and the behaviour of real agents. This package has the
// configuration, the life cycle, and the mapping to log records and metrics.
//
// # Data that an agent can send
//
// An agent sends a registration once, after it has connected (version 2.0; an agent of the RFC
// sends none). Then it sends only answers to commands, in their order: a code, or a list of
// names. It closes the connection when its process ends, when the program closes its last
// handler, or (Python) when it doesn't understand a command.
//
// Other peers, and agents with errors, are handled so:
//
//   - No registration, or a wrong one: the receiver closes the connection after
//     limits.registration_timeout, or immediately.
//   - Slow answers, no answers, or a full receive buffer: the receiver closes the connection
//     after command_timeout, which covers a whole command. A real agent connects again.
//   - Impossible sizes, names without a NUL, or data without a command: the receiver sends the
//     undo commands and closes the connection.
//   - More loggers than the limits allow: the receiver doesn't list them.
//   - Thousands of connections: limits.max_agents bounds them.
//   - A refused command: the receiver counts and logs it.
//
// # The way of the data
//
//  1. receiver.go listens and writes the port files (internal/portfile).
//  2. A registrar (registrar.go) accepts connections and adds agents that register to its registry (registry.go).
//  3. Each connection is a session (internal/session). It sends the commands of the plan (plan.go), then those of the
//     extension agent_control (steering.go), and lists loggers. At its end it restores the agent.
//  4. agent.go makes log records (logs.go) and counts of the events of a session. internal/process finds the agent's
//     process for the resource (resource.go).
//  5. logsink.go queues the records, and shares.go bounds the part of each agent. metrics.go collects by domain, and
//     telemetry.go has the receiver's own counters.
package lttngjulreceiver
