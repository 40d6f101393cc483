// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttngagent implements the protocol with which LTTng's session daemon lists and switches the loggers of
// programs in Java and Python. It has the bytes of every command, reply and registration, for both sides.
//
// It knows the layout of messages, and the commands that each agent supports. It refuses messages that would end a
// real agent. It opens no connections, has no deadlines, and starts nothing. Log records do not use this protocol:
// they go through shared memory to LTTng's daemons.
//
// # The way of the data
//
// The agent connects (TCP, port 5345 unless a port file contains another one). After its registration it only sends
// replies. The daemon sends one command at a time:
//
//	agent ─► Registration              ParseRegistration, Registration.Agent
//	daemon ─► Enable, EnableContext    Agent.AppendCommand   ─► Code   Agent.ReadCode
//	daemon ─► RegistrationDone         Agent.AppendCommand   no reply
//	daemon ─► List                     Agent.AppendCommand   ─► ListReply   Agent.ReadList
//	daemon ─► Disable, DisableContext  Agent.AppendCommand   ─► Code   Agent.ReadCode
//
// The application waits for RegistrationDone, up to 6 s, in the constructor of its first handler (Java) or when it
// imports the agent (Python, 5 s). Agents process commands in order, so the daemon may send RegistrationDone after
// Enable before it has the code.
//
// The agent's side is Registration.AppendTo, Dialect.ReadRequest, Request.Command,
// Code.AppendTo and ListReply.AppendTo.
//
// # Behaviour of real agents
//
// LTTng's agents (2.13) differ from the protocol in these points:
//
//   - The process counts Enable by pattern, and the counts outlive the connection. If an agent was
//     disconnected without Disable, then reconnected and enabled again, two Disable are necessary.
//   - The reply to Enable is never UnknownName, because it also applies to later loggers.
//   - Agents ignore levels and filters. An enabled logger sends all its records to the tracer, and the
//     recording session selects.
//   - Python's agent also ignores names: while anything is enabled, it traces every logger. It answers every
//     Disable with Success. It lists every logger of the program, and the prefixes of their names.
//   - A Java program first waits 3 s for a daemon of the system (by the port file in /var/run/lttng), and
//     then for one of the user.
//   - An exception ends the thread of a Java agent. Its connection stays open without replies, and it does
//     not reconnect. This happens after an unknown command, a payload that is too short, or an unknown type
//     of levels. Python's agent disconnects and reconnects after 3 s, also if a message does not arrive in
//     one piece.
//
// # The RFC
//
// Version 0.1 was a proposal, and no known agent uses it. The header has three numbers of 64 bits, there is no
// registration, Enable has only a name, and the reply to List has first a number of 64 bits and last the code.
package lttngagent
