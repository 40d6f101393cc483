// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/callbraid/callbraid/internal/lttng/lttngagent"

// Result is the result of a command.
type Result uint8

// The results. ResultCount is their number.
const (
	Success Result = iota
	Invalid
	UnknownName
	OtherCode
	// Unsupported: the agent does not have the command, so it was not sent.
	Unsupported
	// NoAnswer: the command was sent, and no readable answer arrived.
	NoAnswer
	// TooLarge: the agent has more loggers than the limits allow.
	TooLarge
	ResultCount
)

func resultOf(code lttngagent.Code) Result {
	switch code {
	case lttngagent.Success:
		return Success
	case lttngagent.Invalid:
		return Invalid
	case lttngagent.UnknownName:
		return UnknownName
	default:
		return OtherCode
	}
}

// Answer is the answer to a command.
type Answer struct {
	Result Result
	Code   lttngagent.Code
	// Err is the reason if there is no code.
	Err error
	// Loggers are the names that a list has.
	Loggers []string
}
