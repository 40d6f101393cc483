// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
)

// Greys are Greys servers. Every second one has a program with endless classes. The others send an
// endless text as each answer.
type Greys struct {
	Endpoints []string
	// Classes is the number of classes of a program.
	Classes int

	tally
}

// Attack answers until ctx ends.
func (n *Greys) Attack(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	failed := make([]error, len(n.Endpoints))
	for i, endpoint := range n.Endpoints {
		if i%2 == 1 {
			all.Go(func() { failed[i] = serve(ctx, endpoint, func(c net.Conn) { n.endless(ctx, c) }) })
			continue
		}
		listener, err := net.Listen("tcp", endpoint)
		if err != nil {
			return err
		}
		server, err := greysserver.New(greysserver.Options{Program: greysserver.ProgramOptions{Classes: n.Classes, Rate: 300, Failures: 0.1, Seed: uint64(i)}, Speed: 10})
		if err != nil {
			return err
		}
		all.Go(func() { failed[i] = server.Serve(ctx, listener) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// endless sends an endless answer, about 5 MiB each second.
func (n *Greys) endless(ctx context.Context, connection net.Conn) {
	n.connections.Add(1)
	text := bytes.Repeat([]byte("| com.example.Attack | attack | endless "), 6000)
	n.sendEndlessly(ctx, connection, text)
}

// Sent returns the amount of the answers.
func (n *Greys) Sent() string {
	return fmt.Sprintf("%d servers, %d connections of endless text, %s", len(n.Endpoints), n.connections.Load(), mib(n.bytes.Load()))
}
