// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package logagent simulates LTTng's log agents. They connect to a daemon, register, execute its commands with the
// replies of real agents, and reconnect 3 s after a disconnection. They are as fragile as real ones, and have further
// faults on request.
//
// The protocol is in package lttngagent. The agents make no log records.
//
// # Behaviour of the daemon and the agent
//
//	registration done          the program's first handler exists, and its loggers with it
//	nothing for 6 s (Python 5) the same after this time
//	closes the connection      Java and Python reconnect after 3 s. Counts of Enable stay, and
//	                           another Enable increases them
//	an unknown command,        Java: the thread ends, the connection stays open without
//	an invalid payload         replies, and the agent does not reconnect
//	                           Python: disconnects, and reconnects after 3 s
//	a context to Python        Python: the same
//	a message in pieces        Java: waits for the rest
//	                           Python: disconnects, and reconnects after 3 s
//
// The reaction of a real agent to an invalid payload depends on earlier commands. This one always fails.
package logagent
