// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package logagent plays LTTng's log agents: they connect to a daemon, register, obey
// its commands with the answers of real agents, and connect again every 3 s when they
// have lost it. They are as fragile as real ones, and break on demand in worse ways.
//
// The protocol is package lttngagent's. No log record is ever made.
//
// # What the daemon does, and how the agent fares
//
//	registration done          the program's first handler is made, and its loggers are there
//	nothing for 6 s (Python 5) the same, that much later
//	closes the connection      Java and Python come back after 3 s; what was enabled
//	                           still is, and counts once more when it is enabled again
//	a command that isn't one,  Java: the thread ends, the connection stays open and mute,
//	a payload that is none     and the agent is gone for the life of the program
//	                           Python: closes, and comes back after 3 s
//	a context to Python        Python: the same
//	a message in pieces        Java: waits for the rest
//	                           Python: closes, and comes back after 3 s
//
// What a real agent does with a payload that is none depends on what came before. The
// one here is strict.
package logagent
