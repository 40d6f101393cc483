// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Publisher is a PUB socket that serves any number of subscribers (RFC 29). A message without
// room in the queue of a subscriber is dropped for that subscriber, as with libzmq, so a slow
// subscriber delays no other. Several goroutines may call all methods at the same time.
type Publisher struct {
	options PublisherOptions
	dropped atomic.Uint64

	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
}

// PublisherOptions are the options of a publisher and of its queues for slow subscribers. The
// zero value has the defaults.
type PublisherOptions struct {
	ServerOptions
	// QueueMessages and QueueBytes bound the queue of each subscriber; default 1000, as with
	// libzmq, and 64 MiB.
	QueueMessages, QueueBytes int
}

const (
	defaultQueueMessages = 1000
	defaultQueueBytes    = 64 << 20
)

// NewPublisher returns a publisher without subscribers.
func NewPublisher(options PublisherOptions) *Publisher {
	options.ServerOptions = options.ServerOptions.withDefaults()
	if options.QueueMessages <= 0 {
		options.QueueMessages = defaultQueueMessages
	}
	if options.QueueBytes <= 0 {
		options.QueueBytes = defaultQueueBytes
	}
	return &Publisher{options: options, subscribers: map[*subscriber]struct{}{}}
}

// Serve serves subscribers that connect to the listener, until ctx ends. Then it returns nil, or
// before that the error of the listener. It closes the listener and all connections, and ends all
// its goroutines.
func (p *Publisher) Serve(ctx context.Context, l net.Listener) error {
	return p.options.serve(ctx, l, p.subscriber)
}

// Send publishes a message of these parts, at least one, to its subscribers. It waits for no
// subscriber, and copies the parts.
func (p *Publisher) Send(parts ...[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var message []byte // encoded once
	for s := range p.subscribers {
		if !s.subscriptions.match(parts[0]) {
			continue
		}
		if message == nil {
			message = AppendMessage(nil, parts...)
		}
		if !s.queue.enqueue(message) {
			p.dropped.Add(1)
		}
	}
}

// Dropped returns how many messages were dropped because subscribers were slow: one for each
// message and subscriber.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }

// Subscriptions returns the number of subscriptions of all peers.
func (p *Publisher) Subscriptions() (n int) {
	for _, s := range p.present() {
		n += s.subscriptions.count()
	}
	return n
}

// Drain waits until the network has accepted all messages to connected subscribers, or until ctx
// ends. It returns the cause of that.
func (p *Publisher) Drain(ctx context.Context) error {
	present := p.present()
	stop := context.AfterFunc(ctx, func() {
		for _, s := range present {
			s.queue.wake()
		}
	})
	defer stop()
	for _, s := range present {
		s.queue.drained(func() bool { return ctx.Err() != nil })
	}
	return context.Cause(ctx)
}

// present returns the connected subscribers.
func (p *Publisher) present() []*subscriber {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.subscribers))
}

// subscriber is one client. One goroutine reads its subscriptions, and one sends.
type subscriber struct {
	traffic       *traffic
	queue         *queue
	subscriptions subscriptions
}

func (p *Publisher) subscriber(ctx context.Context, conn net.Conn) error {
	t, err := accept(ctx, conn, Pub, p.options.Options)
	if err != nil {
		return err
	}
	s := &subscriber{traffic: t, queue: newQueue(p.options.QueueMessages, p.options.QueueBytes)}
	t.other = s.subscriptions.command
	t.answer = s.answer
	p.mu.Lock()
	p.subscribers[s] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.subscribers, s)
		p.mu.Unlock()
	}()
	return t.runUnder(ctx, s.serve)
}

// serve reads and sends until the connection ends, and returns the reason.
func (s *subscriber) serve() error {
	var sent error
	var sender sync.WaitGroup
	sender.Go(func() {
		if sent = s.send(); sent != nil {
			_ = s.traffic.conn.Close() // ends the reading
		}
	})
	read := s.read()
	s.queue.end()
	_ = s.traffic.conn.Close() // ends the sending
	sender.Wait()
	if sent != nil && s.failedFirst(sent) {
		return sent
	}
	return read
}

// failedFirst reports whether sending failed by itself, and not because reading had ended.
func (s *subscriber) failedFirst(sent error) bool { return isTimeout(sent) }

func (s *subscriber) read() error {
	for {
		m, err := s.traffic.receive()
		if err == nil {
			err = s.subscriptions.message(m)
		}
		if err != nil {
			return err
		}
	}
}

// answer sends PING and PONG after the waiting messages. A full queue means that the other side
// doesn't read, so it gets no answer.
func (s *subscriber) answer(b []byte) error {
	s.queue.enqueue(bytes.Clone(b))
	return nil
}

// send sends the messages of the queue until it ends. Small messages are sent together.
func (s *subscriber) send() error {
	var messages [][]byte
	var ok bool
	together := make([]byte, 0, progress)
	for {
		if messages, ok = s.queue.dequeueAll(messages); !ok {
			return nil
		}
		for _, m := range messages {
			if len(together)+len(m) <= cap(together) {
				together = append(together, m...)
				continue
			}
			if err := s.traffic.write(together); err != nil {
				return err
			}
			together = together[:0]
			if err := s.traffic.write(m); err != nil {
				return err
			}
		}
		if err := s.traffic.write(together); err != nil {
			return err
		}
		together = together[:0]
	}
}
