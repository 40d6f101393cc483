// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
)

// Rbkit are Rbkit servers whose programs create endless objects, each of its own class with a long
// name. All their stacks differ, and they send garbage.
type Rbkit struct {
	// Endpoints are the addresses at which they publish.
	Endpoints []string
	// Pause is the time between messages of 256 KiB.
	Pause time.Duration

	tally
	dropped atomic.Int64
}

// Published returns the number of messages that were published while a client had subscribed.
func (n *Rbkit) Published() int64 { return n.messages.Load() }

// Dropped returns the number of messages for which subscribers were too slow. It is complete when
// Attack has returned.
func (n *Rbkit) Dropped() int64 { return n.dropped.Load() }

// objectsOfMessage and stacksOfMessage are the numbers of objects and stacks in one message.
const objectsOfMessage, stacksOfMessage, framesOfStack, className = 300, 10, 50, 500

// Attack publishes until ctx ends.
func (n *Rbkit) Attack(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	servers, failed := make([]*rbkitserver.Server, len(n.Endpoints)), make([]error, len(n.Endpoints))
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	for i, endpoint := range n.Endpoints {
		listener, err := net.Listen("tcp", endpoint)
		if err != nil {
			return err
		}
		servers[i] = rbkitserver.New(rbkitserver.Options{})
		all.Go(func() { failed[i] = servers[i].Serve(serving, listener, nil) })
	}
	for message := 0; pause(ctx, n.Pause); message++ {
		events, err := endlessEvents(message)
		if err != nil {
			return err
		}
		for _, s := range servers {
			if s.Subscribers() == 0 {
				continue
			}
			n.messages.Add(1)
			if message%20 == 19 {
				s.Publish(rbkitserver.Garbage(message / 20))
				continue
			}
			n.bytes.Add(int64(s.PublishEvents(time.Now(), events)))
		}
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, s := range servers {
		_ = s.Drain(drain) // the rest is dropped
		n.dropped.Add(int64(s.Dropped()))
	}
	end()
	all.Wait()
	return errors.Join(failed...)
}

// Sent returns the amount of published data.
func (n *Rbkit) Sent() string {
	return fmt.Sprintf("%d servers, %d messages, %s", len(n.Endpoints), n.messages.Load(), mib(n.bytes.Load()))
}

// endlessEvents returns the events of a message. No message repeats the objects of another.
func endlessEvents(message int) (*rbkit.Collection, error) {
	now, events := rbkit.Time(time.Now().UnixMilli()), rbkit.NewCollection(rbkit.Released)
	long := strings.Repeat("C", className)
	for i := range objectsOfMessage {
		id := message*objectsOfMessage + i + 1
		if err := events.Created(now, uint64(id), fmt.Appendf(nil, "Attack%d%s", id, long)); err != nil {
			return nil, err
		}
	}
	for i := range stacksOfMessage {
		var frames []rbkit.Frame
		for depth := range framesOfStack {
			name := fmt.Appendf(nil, "m%d_%d_%d", message, i, depth)
			frames = append(frames, rbkit.Frame{Method: name, Label: name, File: fmt.Appendf(nil, "/attack/%s.rb", name), Line: 1, Thread: 1})
		}
		if err := events.Sample(now, frames); err != nil {
			return nil, err
		}
	}
	return events, nil
}
