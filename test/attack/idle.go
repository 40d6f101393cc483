// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"net"
)

// Idle are connections that say nothing. Each that is closed is opened again at once.
type Idle struct {
	Endpoint string
	// Connections is how many there are at once.
	Connections int

	tally
}

// Attack keeps the connections open until ctx ends.
func (n *Idle) Attack(ctx context.Context) error {
	n.again(ctx, n.Endpoint, n.Connections, 0, func(connection net.Conn) {
		b := make([]byte, 64)
		for err := error(nil); err == nil; {
			_, err = connection.Read(b)
		}
	})
	return nil
}

// Sent says how many connections were opened.
func (n *Idle) Sent() string {
	return fmt.Sprintf("%d at once, opened %d times, %d not accepted", n.Connections, n.connections.Load(), n.unreached.Load())
}
