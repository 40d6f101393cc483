// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"sync"

	"github.com/callbraid/callbraid/test/kit/flood"
)

// Idle are connections that say nothing, from many addresses. Each that is closed is opened again
// at once. They have a process of their own: in this one they would take the time of honest peers,
// and the collector would be blamed for it. The program that uses it calls flood.RunIfChild first.
type Idle struct {
	Endpoint string
	// Connections is the number of simultaneous connections.
	Connections int

	mu     sync.Mutex
	counts flood.Counts
}

// idleAddresses is from how many addresses the connections come.
const idleAddresses = 200

// Attack keeps the connections open until ctx ends.
func (n *Idle) Attack(ctx context.Context) error {
	process, err := flood.Spawn(flood.Options{Address: n.Endpoint, Connections: n.Connections, From: flood.Loopback(idleAddresses)})
	if err != nil {
		return err
	}
	_, err = process.Await(func(c flood.Counts) bool {
		n.note(c)
		return ctx.Err() != nil
	})
	last, failed := process.Stop()
	n.note(last)
	if err == nil {
		err = failed
	}
	return err
}

func (n *Idle) note(c flood.Counts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.Opened > 0 {
		n.counts = c
	}
}

// Sent says how many connections were opened.
func (n *Idle) Sent() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("%d at the same time, opened %d times, %d not accepted", n.Connections, n.counts.Opened, n.counts.Failed)
}
