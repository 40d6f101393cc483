// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
)

// Arthas are Arthas servers. The first of three has a program with endless classes, the second one answers with each fault
// in turn, such as a body without an end or 63 MB of a value. The third sends an endless header.
type Arthas struct {
	Endpoints []string
	// Classes is the number of classes of a program.
	Classes int

	tally
}

// Attack answers until ctx ends.
func (n *Arthas) Attack(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	failed := make([]error, len(n.Endpoints))
	for i, endpoint := range n.Endpoints {
		const kinds = 3
		load := arthasserver.Load{Classes: n.Classes, Methods: 10, Rate: 300, Failures: 0.1, Threads: 4, Seed: uint64(i)}
		settings := arthasserver.Settings{}
		switch i % kinds {
		case 1:
			load.Classes = 10
			settings.Faults, settings.FaultEvery = allFaults(), 4
		case 2:
			all.Go(func() { failed[i] = serve(ctx, endpoint, func(c net.Conn) { n.endless(ctx, c) }) })
			continue
		}
		settings.Classes = load.ClassMethods()
		listener, err := net.Listen("tcp", endpoint)
		if err != nil {
			return err
		}
		server := arthasserver.New(settings)
		all.Go(func() { failed[i] = server.Serve(ctx, listener) })
		all.Go(func() { server.Play(ctx, load) })
	}
	all.Wait()
	return errors.Join(failed...)
}

func allFaults() (all []arthasserver.Fault) {
	for i := range arthasserver.Names() {
		all = append(all, arthasserver.Fault(i+1))
	}
	return all
}

// endless sends an answer whose header does not end, about 5 MiB each second.
func (n *Arthas) endless(ctx context.Context, connection net.Conn) {
	n.connections.Add(1)
	if _, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\nX-Endless: "); err != nil {
		return
	}
	text := bytes.Repeat([]byte("endless"), 40_000)
	n.sendEndlessly(ctx, connection, text)
}

// Sent returns the amount of the answers.
func (n *Arthas) Sent() string {
	return fmt.Sprintf("%d servers, %d connections of an endless header, %s", len(n.Endpoints), n.connections.Load(), mib(n.bytes.Load()))
}
