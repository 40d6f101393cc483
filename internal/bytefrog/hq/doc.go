// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package hq is the headquarters' side of the conversation with one Bytefrog agent: which
// commands the agent gets and in which order, and how the headquarters disconnects so
// that the traced program runs on. The Bytefrog receiver and the guard use it.
//
//	file          holds
//	machine.go    the state machine of one agent, without connection, lock and clock
//	agent.go      the agent: the state machine with its lock, its timers, and waiting goroutines
//	farewell.go   the steps in which a headquarters disconnects
//	turnaway.go   the refusal of an agent that was not started
//	write.go      messages to an agent, and the refusal of a connection
//	signal.go     a condition that goroutines wait for
//
// The package opens and reads no connection, decodes nothing and puts no events in order. Its
// user reads the connections, and reports to Agent what the agent sent.
package hq
