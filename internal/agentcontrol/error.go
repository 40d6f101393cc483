// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrol

import (
	"context"
	"errors"
	"fmt"
)

// Reason is why an order was not carried out, or is not known to be.
type Reason string

// The reasons.
const (
	// UnknownCommand: the agent doesn't have it.
	UnknownCommand Reason = "unknown_command"
	// BadArgument: an argument is missing, unknown, or out of its bounds.
	BadArgument Reason = "bad_argument"
	// NotAllowed: it stops or pauses programs, which is not allowed.
	NotAllowed Reason = "not_allowed"
	// Busy: too many others wait for the agent.
	Busy Reason = "busy"
	// NotNow: the state of the agent forbids the command.
	NotNow Reason = "not_now"
	// Refused: the agent received the command and refused.
	Refused Reason = "refused"
	// Lost: the agent has disconnected, or the receiver is disconnecting it.
	Lost Reason = "lost"
	// NoAnswer: the agent may have received the command, and its result is not known.
	NoAnswer Reason = "no_answer"
)

// Done is the outcome of an order without an error.
const Done = "done"

// Error is why an order was not carried out.
type Error struct {
	Reason Reason
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with a text.
func Errorf(reason Reason, format string, values ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, values...)}
}

// ReasonOf returns the reason of an error of Do. For an error other than *Error it is NoAnswer if a
// context has ended, and Lost otherwise.
func ReasonOf(err error) Reason {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Reason
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return NoAnswer
	default:
		return Lost
	}
}
