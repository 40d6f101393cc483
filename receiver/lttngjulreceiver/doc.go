// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package lttngjulreceiver replaces LTTng's session daemon for the agents in Java and Python
// programs. It registers agents, lists their loggers, and enables and disables loggers. It
// delivers these events as log records and metrics. The records of the loggers themselves take
// another way: through the tracer to LTTng's own daemons.
//
// The package knows the order of messages. Package internal/lttng/lttngagent knows their
// layout, and the behaviour of real agents.
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
//  1. receiver.go listens and writes the port files (portfile.go, portfiles.go).
//  2. A registrar (registrar.go) accepts connections, reads registrations, and adds agents to
//     its registry (registry.go).
//  3. An agent (agent.go) has one goroutine, which sends commands on a conversation
//     (conversation.go): first those of the plan (plan.go), then orders of extensions
//     (orders.go, steering.go), and lists at a pace (pace.go). memory.go bounds the names of
//     loggers (inventory.go).
//  4. At its end (ending.go) the agent is restored. Undo commands that could not be sent wait
//     for its next connection (pendingundo.go).
//  5. Log records (logs.go) have the resource of the agent's process (resource.go, lookups.go).
//     logsink.go queues them; shares.go bounds the part of each agent. metrics.go collects by
//     domain, and telemetry.go has the receiver's own counters.
//
// A file uses only files below it; receiver.go and registrar.go are at the top, config.go and
// results.go at the bottom.
package lttngjulreceiver
