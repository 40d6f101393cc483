// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import "context"

// interruption is the end of the time of a shutdown, in the middle of a message.
type interruption struct {
	ctx   context.Context
	asked uint
}

// asksUntilLook is how often it may be asked for until it is looked for.
const asksUntilLook = 1024

// came reports whether it came. It is asked for before each thing that a message has, so
// that it looks only now and then.
func (i *interruption) came() bool {
	i.asked++
	return i.asked%asksUntilLook == 0 && i.ctx.Err() != nil
}
