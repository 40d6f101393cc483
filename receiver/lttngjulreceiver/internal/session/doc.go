// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package session is one connection of an LTTng log agent, from its registration until it is restored or gone. It sends
// commands in order, lists the agent's loggers at a pace, and remembers the commands that restore the agent.
//
//	file             content
//	session.go       the session: registration, commands, lists, restoring
//	conversation.go  the connection: one command at a time, deadlines
//	commandqueue.go  the queue of commands
//	result.go        results of commands
//	ending.go        why a session ended
//	undo.go          undo commands of closed connections
//	memory.go        the bound for names of loggers
//	inventory.go     the loggers of the agent, and how they differ from the last list
//	pace.go          when to list
//
// A group has the state that sessions share. An observer receives the events of a session, and the receiver makes log
// records and metrics of them. The package knows neither pdata nor the receiver's configuration.
package session
