// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// session is a session of the server. The server's lock guards it.
type session struct {
	id               string
	life             *program
	created, used    time.Time
	consumers        []*consumer
	shared           []*queued
	inputStatus      string
	job              *job
	made             int
	userID           string
	reportsUnhealthy bool
}

// consumer is a queue of a session for one client.
type consumer struct {
	id      string
	queue   []*queued
	used    time.Time
	polling bool
	closed  bool
	// changed has an element after the queue or closed changed.
	changed chan struct{}
}

// queued is a result in queues. Several queues may have it.
type queued struct {
	result result
	// life is the program that the result is of.
	life *program
	// received means that a client received it.
	received bool
}

// MarshalJSON returns the result.
func (q *queued) MarshalJSON() ([]byte, error) { return json.Marshal(q.result) }

func randomID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// join adds a consumer, which gets the results that the session has sent.
func (s *session) join(now time.Time, joined bool) *consumer {
	s.made++
	c := &consumer{id: fmt.Sprintf("%s_%d", strings.ReplaceAll(randomID(), "-", ""), s.made), used: now, changed: make(chan struct{}, 1)}
	if joined {
		c.add(&queued{result: result{"type": "input_status", "jobId": 0, "inputStatus": "DISABLED"}, life: s.life})
		for _, r := range s.shared {
			c.add(r)
		}
		if s.inputStatus != "" {
			c.add(&queued{result: result{"type": "input_status", "jobId": 0, "inputStatus": s.inputStatus}, life: s.life})
		}
	}
	s.consumers = append(s.consumers, c)
	return c
}

// queueLength is the length of all queues of a session.
const queueLength = 50

// add appends a result. A full queue drops its oldest.
func (c *consumer) add(q *queued) {
	if len(c.queue) == queueLength {
		if oldest := c.queue[0]; !oldest.received {
			oldest.life.truth.Dropped++
		}
		c.queue = c.queue[1:]
	}
	c.queue = append(c.queue, q)
	c.wake()
}

func (c *consumer) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *consumer) healthy(now time.Time, patience time.Duration) bool {
	return c.polling || len(c.queue) < queueLength || now.Sub(c.used) < patience
}

// send appends a result to all queues. If no client pulls, it interrupts the job.
func (s *session) send(srv *Server, r result) {
	now, q := srv.settings.now(), &queued{result: r, life: s.life}
	if r["type"] == "input_status" {
		s.inputStatus = r["inputStatus"].(string)
	} else {
		if len(s.shared) == queueLength {
			s.shared = s.shared[1:]
		}
		s.shared = append(s.shared, q)
	}
	healthy := 0
	for _, c := range s.consumers {
		if c.healthy(now, srv.settings.Patience) {
			healthy++
		}
		c.add(q)
	}
	if len(s.consumers) == 0 || healthy > 0 {
		s.reportsUnhealthy = false
		return
	}
	if !s.reportsUnhealthy && s.job != nil {
		s.reportsUnhealthy = true
		s.job.end(srv, 0, "")
		s.send(srv, result{"type": "message", "jobId": 0, "message": "all consumers are unhealthy, current job was interrupted."})
	}
}

func (s *session) input(srv *Server, status string) {
	s.send(srv, result{"type": "input_status", "jobId": 0, "inputStatus": status})
}

// The server's limits.
const (
	pageLength  = 20
	packedItems = 100
	execLength  = 500
)

// poll waits for results, and returns a page. It is called without the server's lock.
func (srv *Server) poll(c *consumer) []*queued {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	c.used = srv.settings.now()
	if c.polling {
		// The real server waits for the other poll.
		srv.unlocked(func() { srv.wait(srv.settings.PullWait / 4) })
		if c.polling {
			return []*queued{}
		}
	}
	c.polling = true
	deadline := time.NewTimer(srv.settings.PullWait)
	defer deadline.Stop()
	page, items := []*queued{}, 0
	wait, over := deadline.C, false
	for !c.closed && len(page) < pageLength && items < packedItems {
		if len(c.queue) > 0 {
			page, c.queue = append(page, c.queue[0]), c.queue[1:]
			items += itemsOf(page[len(page)-1].result)
			if len(page) == 1 {
				gather := time.NewTimer(srv.settings.Gather)
				defer gather.Stop()
				wait = gather.C
			}
			continue
		}
		if over {
			break
		}
		srv.unlocked(func() {
			select {
			case <-c.changed:
			case <-wait:
				over = true
			case <-srv.done:
				over = true
			}
		})
	}
	c.polling, c.used = false, srv.settings.now()
	return page
}

func (srv *Server) endSessions() {
	srv.program.truth.Sessions = srv.opened()
	for _, s := range srv.sessions {
		srv.remove(s)
	}
}

func (srv *Server) remove(s *session) {
	if s.job != nil {
		s.job.end(srv, 0, "")
	}
	for _, c := range s.consumers {
		c.closed = true
		c.wake()
	}
	delete(srv.sessions, s.id)
}

// EvictConsumers removes the queues that no client has pulled for a time, and sessions that were idle for a time.
func (srv *Server) EvictConsumers(queues, sessions time.Duration) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	now := srv.settings.now()
	for _, s := range srv.sessions {
		s.consumers = slices.DeleteFunc(s.consumers, func(c *consumer) bool { return !c.polling && now.Sub(c.used) > queues })
		if s.job == nil && now.Sub(s.used) > sessions {
			srv.remove(s)
		}
	}
}

// running returns what the running jobs instrument.
func (srv *Server) running() (targets []target) {
	for _, s := range srv.sessions {
		if s.job != nil {
			targets = append(targets, s.job.target)
		}
	}
	return targets
}
