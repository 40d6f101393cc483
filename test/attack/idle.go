// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"sync"

	"github.com/callbraid/callbraid/test/kit/flood"
)

// Idle are silent connections from many addresses. It opens each closed connection again
// immediately. They have their own process, because in this one they would use the processor time
// of honest peers. The main function of the program has to call flood.RunIfChild first.
type Idle struct {
	Endpoint string
	// Connections is the number of simultaneous connections.
	Connections int

	mu     sync.Mutex
	counts flood.Counts
}

// idleAddresses is the number of addresses that connect.
const idleAddresses = 200

// Attack keeps the connections open until ctx ends.
func (n *Idle) Attack(ctx context.Context) error {
	process, err := flood.Spawn(flood.Options{Address: n.Endpoint, Connections: n.Connections, From: flood.Loopback(idleAddresses)})
	if err != nil {
		return err
	}
	_, err = process.Await(func(c flood.Counts) bool {
		n.record(c)
		return ctx.Err() != nil
	})
	last, failed := process.Stop()
	n.record(last)
	if err == nil {
		err = failed
	}
	return err
}

func (n *Idle) record(c flood.Counts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.Opened > 0 {
		n.counts = c
	}
}

// Sent returns the number of connections.
func (n *Idle) Sent() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("%d at the same time, opened %d times, %d not accepted", n.Connections, n.counts.Opened, n.counts.Failed)
}
