// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/rbkit"
)

// attendInterval is how often what is old enough is handed on where no messages come.
const attendInterval = time.Second

// attend does what a connected server needs beside being received from, in goroutines of
// its own: it asks who the server is, switches on what is wanted, gives orders at their
// time, and hands on what is old. What it returns ends it, and waits for that.
func (s *server) attend(ctx context.Context) (detach func()) {
	ctx, end := context.WithCancel(ctx)
	var attending sync.WaitGroup
	attending.Go(func() {
		s.meet(ctx)
		attending.Go(func() { s.handOnOld(ctx) })
		if s.control != nil {
			s.command(ctx)
		}
		// Whose messages came last is known at the end in any case.
		s.meet(ctx)
	})
	return func() {
		end()
		attending.Wait()
		if s.control != nil {
			s.control.hangUp()
		}
	}
}

// handOnOld hands on what is old enough until the context ends.
func (s *server) handOnOld(ctx context.Context) {
	ticker := time.NewTicker(attendInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			s.process.handOnDue(s.env.now())
			s.tell()
			s.mu.Unlock()
		}
	}
}

// command gives the server orders until the context ends.
func (s *server) command(ctx context.Context) {
	config := s.env.config
	state, stopState := every(config.StateInterval)
	defer stopState()
	collect, stopCollect := every(config.TriggerGCInterval)
	defer stopCollect()
	dump, stopDump := every(config.ObjectSpaceSnapshotInterval)
	defer stopDump()
	// again is when a state that could not be corrected is tried again; nil: it was.
	var again <-chan time.Time
	pauses := backoff.New(config.Reconnect)
	correct := func() {
		again = nil
		if s.correct(ctx) {
			pauses.Reset()
		} else {
			again = time.After(pauses.Pause())
		}
	}
	s.control.correctSoon()
	for {
		select {
		case <-ctx.Done():
			return
		case <-state:
			correct()
		case <-again:
			correct()
		case <-s.control.soon:
			s.meet(ctx)
			correct()
		case <-collect:
			s.control.order(ctx, rbkit.TriggerGC)
		case <-dump:
			s.control.order(ctx, rbkit.ObjectSpaceSnapshot)
		}
	}
}

// every ticks at an interval; 0: never.
func every(interval time.Duration) (ticks <-chan time.Time, stop func()) {
	if interval == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(interval)
	return ticker.C, ticker.Stop
}

// correct corrects the state of the server, and remembers by what clock it samples. ok is
// false where the server doesn't answer.
func (s *server) correct(ctx context.Context) (ok bool) {
	return s.control.correct(ctx, func(h *rbkit.HandshakeReply) {
		said := *h
		s.says(&said)
	})
}
