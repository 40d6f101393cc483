// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package interruption ends the work on a long message early.
package interruption

import "context"

// Interruption ends the work on a message early: a context ends, or memory is short.
type Interruption struct {
	// ctx is the context, and ended the error after its end.
	ctx   context.Context
	ended error
	// hold counts memory. Its error says that memory is short.
	hold  func() error
	calls uint
	// Reason is the error of the interruption; nil: the work goes on.
	Reason error
}

// New returns an interruption with the error ended after the end of a context.
func New(ctx context.Context, ended error, hold func() error) Interruption {
	return Interruption{ctx: ctx, ended: ended, hold: hold}
}

// callsPerCheck is how many calls of isDue there are for each check.
const callsPerCheck = 1024

// Begin begins the work on another message.
func (i *Interruption) Begin() { i.Reason = nil }

// IsDue reports whether the work on the message has to end. It is called for each element of the
// message, and checks only sometimes.
func (i *Interruption) IsDue() bool {
	i.calls++
	if i.calls%callsPerCheck == 0 {
		i.check()
	}
	return i.Reason != nil
}

// check finds out whether the work has to end.
func (i *Interruption) check() {
	switch {
	case i.Reason != nil:
	case i.ctx.Err() != nil:
		i.Reason = i.ended
	default:
		i.Reason = i.hold()
	}
}
