// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package agentcontrol is the boundary between receivers, which have agents, and the
// extension that shows and steers them. It knows no tracer and no HTTP.
//
// A receiver asks for the extension when it is started, tells it of every agent that it
// gets, and says when it has it no more:
//
//	r.agents = agentcontrol.Of(host)
//	...
//	end := r.agents.Register(agent)
//	defer end()
//
// Where no extension is configured, Of gives no directory, and registering does nothing: nothing is
// asked of agents, and nothing runs. Nobody looks at an agent unless somebody asks, and
// what is shown then are numbers that the receiver has anyway. So nothing of this is on the
// way of events.
//
// # What can happen, and who takes care of it
//
//   - Two commands for one agent at once: the extension gives an agent one after the
//     other, and refuses those that would have to wait for too many. Receivers hold all the
//     same if two come, because there can be two extensions.
//   - An agent that dies in the middle of a command: Do returns an [Error] with [Lost].
//   - An answer after the deadline: Do returns when its context ends, with [NoAnswer]. What
//     the agent was told it was told; the receiver goes on with what it answers.
//   - An agent that is registered twice: IDs are for an agent and its connection, so it is
//     two agents, of which one goes. Two with one ID are a mistake: the second isn't shown.
//   - A receiver that is shut down while a command runs: Do returns Lost, or the answer, if
//     that comes before. A command that comes later is Lost, too.
//   - The extension is shut down first or last: an agent that is registered afterwards is
//     not shown, and ending it does nothing. Commands that run are cancelled by their
//     contexts.
//   - Text that agents made up: it is text, whatever stands in it; whoever shows it escapes
//     and shortens it.
//
// # What a receiver's tests have to show
//
// agentcontroltest.Contract plays a receiver's agents all that can be tried of any tracer: that
// they are shown once, do what they can be told and are told nothing else, that nobody waits
// longer than they want to, and what is answered when an agent dies, the receiver is shut down
// or the collector is reloaded. Each receiver runs it. What else has to be shown, by tests of the
// receiver's own:
//
//   - The agent does what it was told last, where two tell it the opposite at once.
//   - An agent that refuses is told apart: Refused.
//   - Nothing is left in memory of orders that were given up.
//   - What it switched on is switched off when the receiver is shut down, also where a
//     command to switch it off was refused before; what others switched on is not.
//   - Each command that stops or pauses the program, or may, is Disruptive, or has arguments
//     that say for which values it does.
package agentcontrol
