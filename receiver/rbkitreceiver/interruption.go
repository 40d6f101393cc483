// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"errors"
)

// interruption ends the work on a message early: the time of the shutdown is over, or
// memory is short.
type interruption struct {
	ctx   context.Context
	calls uint
	// held counts memory; nil: no memory is counted.
	held func() error
	// reason is the error of the interruption.
	reason error
}

// asksUntilLook is how often it may be asked for until it is looked for.
const callsPerCheck = 1024

// isDue reports whether to stop. It is called for each element of a message, and checks
// only sometimes.
func (i *interruption) isDue() bool {
	i.calls++
	return i.calls%callsPerCheck == 0 && i.check() != nil
}

// check finds out whether to stop.
func (i *interruption) check() error {
	if i.ctx.Err() != nil {
		i.reason = errShutdown
	} else if i.held != nil {
		i.reason = i.held()
	}
	return i.reason
}

var errShutdown = errors.New("the collector is shut down")
