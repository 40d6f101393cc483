// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"sync"
	"time"
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
	var all sync.WaitGroup
	defer all.Wait()
	for turn := range n.Connections {
		all.Go(func() {
			b := make([]byte, 64)
			for ctx.Err() == nil {
				connection, err := dial(ctx, n.Endpoint, turn)
				if err != nil {
					n.refused.Add(1)
					pause(ctx, 100*time.Millisecond)
					continue
				}
				n.connections.Add(1)
				for err == nil {
					_, err = connection.Read(b)
				}
				_ = connection.Close() // the end of ctx has done so, or it is refused
			}
		})
	}
	return nil
}

// Sent says how many connections were opened.
func (n *Idle) Sent() string {
	return fmt.Sprintf("%d at once, opened %d times, %d not accepted", n.Connections, n.connections.Load(), n.refused.Load())
}
