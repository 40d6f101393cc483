// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttngagent is the protocol by which LTTng's session daemon lists and switches
// the loggers of programs in Java and Python. It has the bytes of every command, reply
// and registration, for both sides.
//
// It knows what stands where, what an agent has, and what would end a real one: that
// cannot be written. It keeps no connections, has no deadlines, and starts nothing. No
// log record crosses this protocol: those go through shared memory to LTTng's daemons.
//
// # The way of the data
//
// The agent connects (TCP, port 5345 unless a port file says another) and is then
// silent, but for its replies. The daemon sends one command at a time:
//
//	agent ─► Registration              ParseRegistration, Registration.Agent
//	daemon ─► Enable, EnableContext    Agent.AppendCommand   ─► Code   Agent.ReadCode
//	daemon ─► RegistrationDone         Agent.AppendCommand   no reply
//	daemon ─► List                     Agent.AppendCommand   ─► ListReply   Agent.ReadList
//	daemon ─► Disable, DisableContext  Agent.AppendCommand   ─► Code   Agent.ReadCode
//
// The application waits for RegistrationDone, up to 6 s, in the constructor of its first
// handler (Java) or when it imports the agent (Python, 5 s). Commands are answered in
// their order, so RegistrationDone may follow Enable without waiting for its code.
//
// The agent's side is Registration.AppendTo, Dialect.ReadRequest, Request.Command,
// Code.AppendTo and ListReply.AppendTo.
//
// # What real agents do
//
// LTTng's agents (2.13) differ from what the protocol makes one think:
//
//   - What is enabled is counted by its pattern, in the process. The count outlives the
//     connection: an agent that lost it without Disable, comes back, and is enabled once
//     more has to be disabled twice.
//   - Enable is never answered UnknownName: it holds for loggers that come later, too.
//   - Levels and filters are not looked at. A logger that is enabled sends all its
//     records to the tracer, and the session that records them selects.
//   - Python's agent doesn't look at names either: while anything is enabled, every
//     logger is traced. It answers Disable with Success, whatever it is for. It lists
//     every logger that the program has, and the parts of their names.
//   - In Java a program waits 3 s for a daemon of the system's (by the port file in
//     /var/run/lttng), and only then for one of the user's.
//   - An exception ends the thread of a Java agent, leaves its connection open and mute,
//     and nobody comes back: a command that it doesn't know, a payload that is too short,
//     a type of levels that it doesn't know. Python's agent closes, and comes back after
//     3 s; so it does on a message that doesn't come in one piece.
//
// # The RFC
//
// Version 0.1 was a proposal, and no agent is known that speaks it. The header has three
// numbers of 64 bits, nothing is registered, Enable has a name only, and the reply to
// List has a number of 64 bits first and the code last.
package lttngagent
