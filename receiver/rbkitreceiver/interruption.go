// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"errors"
)

// interruption is the end of the time of a shutdown, or of the memory that there is, in the
// middle of a message.
type interruption struct {
	ctx   context.Context
	asked uint
	// held counts what is in memory; nil: nobody does.
	held func() error
	// why is what came.
	why error
}

// asksUntilLook is how often it may be asked for until it is looked for.
const asksUntilLook = 1024

// came reports whether it came. It is asked for before each thing that a message has, so
// that it looks only now and then.
func (i *interruption) came() bool {
	i.asked++
	return i.asked%asksUntilLook == 0 && i.look() != nil
}

// look finds out whether it came.
func (i *interruption) look() error {
	if i.ctx.Err() != nil {
		i.why = errShutdown
	} else if i.held != nil {
		i.why = i.held()
	}
	return i.why
}

var errShutdown = errors.New("the collector is shut down")
