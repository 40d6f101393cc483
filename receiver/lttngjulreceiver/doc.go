// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package lttngjulreceiver takes the place of LTTng's session daemon towards the agents in
// Java and Python programs: it registers them, lists their loggers, and enables and
// disables these. What it learns is handed on as log records and metrics. The records of
// the loggers themselves go another way: through the tracer to LTTng's own daemons.
//
// It knows what is said in which order. It doesn't know how messages are laid out, nor
// what an agent can be told: that is internal/lttng/lttngagent, whose page has what real agents
// do.
//
// # What an agent can send
//
// A registration, once, when it has connected (version 2.0; an agent of the RFC sends
// nothing). Then nothing but the answers to commands, in their order: a code, or a list
// of names. It ends by closing the connection: when its process ends, when the last
// handler of the program is closed, or (Python) because it understood nothing.
//
// What others do that connect, or agents that are ill:
//
//   - send nothing, less than a registration, or something else: closed after
//     limits.registration_timeout, or at once;
//   - answer slowly, never, a byte at a time, or don't read: closed when command_timeout is
//     over, which holds for the whole of a command. The real agent comes back by itself;
//   - answer with impossible sizes, names without a NUL, or without being asked: told the
//     opposite of what they were told, and closed;
//   - have more loggers than the limits allow: kept, and not listed;
//   - come in thousands: limits.max_agents is how many connections are open at once;
//   - refuse a command: counted, said, and no reason to go.
//
// # The way of the data
//
// config.go, with validate.go and plan.go, and factory.go are what an operator sees;
// receiver.go is the life of the receiver, which shutdown.go ends. portfile.go tells
// agents the port, and portfiles.go looks after the files. accept.go takes connections,
// registration.go finds out who they are, and agent.go is the life of an agent: one
// goroutine, which owns the connection. conversation.go is that connection, with one
// command at a time; commands.go is what becomes of each; orders.go is how others have the
// agent told something, and steering.go how those who do with the extension agent_control;
// inventory.go, pace.go and budget.go are about its loggers.
// ending.go is why an agent has gone, parting.go what it is told before its connection is
// closed, and leftovers.go remembers what the command was not sent. registry.go knows all agents.
//
// events.go is what is said of an agent, in log lines and log records. resource.go says
// whose the records (logs.go) are, by what lookups.go finds out with process_linux.go and
// socket_linux.go. metrics.go counts by domain. handover.go gives all to the pipelines, of
// whose queue each agent has a share (shares.go); telemetry.go counts for the operator.
package lttngjulreceiver
