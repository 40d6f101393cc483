// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// outcome is the way in which a run ended.
type outcome uint8

const (
	// outcomeEnded: the limit is reached, or the list is complete.
	outcomeEnded outcome = iota
	outcomeRefused
	outcomeUnsupported
	// outcomeLost: the connection ended, or a reply could not be decoded.
	outcomeLost
	outcomeTimedOut
	// outcomeUnmatched: the pattern matches no class or method yet.
	outcomeUnmatched
	// outcomeStopped: the receiver ended the run.
	outcomeStopped
)

func (o outcome) String() string {
	return [...]string{"ended", "refused", "unsupported", "lost", "timed_out", "unmatched", "stopped"}[o]
}

// isRefusal reports whether the server has refused the command.
func (o outcome) isRefusal() bool {
	return o == outcomeRefused || o == outcomeUnsupported || o == outcomeUnmatched
}

// Causes with which the receiver ends a run.
var (
	errUnmatched = errors.New("the pattern matches nothing yet")
	errEnough    = errors.New("the limit is reached")
	errCleaning  = errors.New("a reset removes the code of lost commands")
	errEnded     = errors.New("another operator has ended the task")
	// errPart means that a part has ended unexpectedly. errPoisoned means that the server has refused a part, and may
	// have left instrumentation.
	errPart     = errors.New("a command of the pattern has ended")
	errPoisoned = errors.New("a reset undoes a refused command, and the receiver sends the others again")
)

// errEarly is the error of a run that ended before its limit without an error.
var errEarly = errors.New("the server ended the command before its limit")

// outcomeOf returns the outcome for a command's error.
func outcomeOf(err error) outcome {
	for _, of := range []struct {
		err     error
		outcome outcome
	}{
		{javamethods.ErrLimit, outcomeEnded},
		{javamethods.ErrUnmatched, outcomeUnmatched},
		{javamethods.ErrUnsupported, outcomeUnsupported},
		{javamethods.ErrSessionTimedOut, outcomeTimedOut},
		{javamethods.ErrRefused, outcomeRefused},
	} {
		if errors.Is(err, of.err) {
			return of.outcome
		}
	}
	return outcomeLost
}

func orEarly(err error) error {
	if err == nil {
		return errEarly
	}
	return err
}
