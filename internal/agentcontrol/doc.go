// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package agentcontrol is the boundary between receivers, which have agents, and the extension that
// shows and commands them. It knows no tracer and no HTTP.
//
// At its start a receiver asks the host for the extension: Run.Agents of package receiverkit has the
// result of Of. The receiver registers each agent, and ends the registration when the agent is gone:
//
//	end := run.Agents.Register(agent)
//	defer end()
//
// If no extension is configured, Of returns no directory, and registering does nothing: no agent is
// asked, and no goroutine runs. An agent is only asked on a client's request, and the result has
// numbers that the receiver has anyway. So none of this slows events.
//
// # Servers
//
// A receiver that connects to servers has an agent for each configured server, also if the server
// has several processes:
//
//   - It registers the agent when it starts, and ends the registration when its shutdown begins. The
//     agent stays while the server is not connected. Its State shows this, and Do returns Lost.
//   - The ID is a function of the receiver's ID and the configured address: it is the same after a
//     lost connection and after a restart.
//   - A switch of an operator holds until the shutdown, in place of the receiver's settings. The
//     receiver sends it again when the server or the program was restarted.
//
// # Events, and the part that handles them
//
//   - Two commands for one agent at the same time: the extension sends an agent one after the
//     other, and refuses those beyond its bounds. Receivers must still accept two, because there
//     can be two extensions.
//   - An agent that dies in the middle of a command: Do returns an [Error] with [Lost].
//   - An answer after the deadline: Do returns when its context ends, with [NoAnswer]. The agent
//     still has the command, and the receiver handles its answer.
//   - An agent that connects twice: the IDs of agents that connect are for an agent and its
//     connection, so there are two agents, one of which disconnects. Two with one ID are an error:
//     the second isn't shown.
//   - A receiver that is shut down while a command runs: Do returns Lost, or the answer if that
//     arrives first. A later command is Lost, too.
//   - The extension is shut down first or last: an agent that is registered afterwards is not
//     shown, and ending its registration does nothing. The contexts of running commands end.
//   - Texts of agents can be any text. Programs that show them escape and shorten them.
//
// # Tests of a receiver
//
// agentcontroltest.Contract checks a receiver's agents for everything that is common to all
// tracers: they are shown once, carry out their commands, and receive no others. Orders end with
// their contexts, with the death of the agent, with a shutdown of the receiver, and with a reload
// of the collector. Each receiver that registers agents runs it. A receiver's own tests show the rest:
//
//   - If two clients send opposite commands at the same time, the agent follows the last one.
//   - A refusal by the agent has its own reason: Refused.
//   - Cancelled orders use no memory.
//   - A shutdown of the receiver switches off everything that it switched on, also if a command
//     to switch it off was refused before. It does not switch off what others switched on.
//   - Each command that stops or pauses the program, or may do so, is Disruptive, or has
//     parameters that describe the disruptive values.
package agentcontrol
