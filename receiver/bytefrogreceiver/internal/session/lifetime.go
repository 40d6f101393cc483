// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"
	"time"
)

// lifetime is the course of a run: opened, started, leaving. It is for many goroutines.
type lifetime struct {
	opened time.Time
	// started is closed when the agent has received start. leaving is closed when ending is set.
	started, leaving chan struct{}
	ending           Ending
	// deciding is held while the agent is started, and while the run's end is decided. An agent
	// whose end is decided first is not started.
	deciding sync.Mutex
}

func newLifetime(opened time.Time) *lifetime {
	return &lifetime{opened: opened, started: make(chan struct{}), leaving: make(chan struct{})}
}

// start starts the agent with send, unless the run's end is decided.
func (l *lifetime) start(send func() error) error {
	l.deciding.Lock()
	defer l.deciding.Unlock()
	if l.isLeaving() {
		return nil
	}
	if err := send(); err != nil {
		return err
	}
	close(l.started)
	return nil
}

func (l *lifetime) isStarted() bool { return isClosed(l.started) }

// leave decides that the run ends. Only the first decision counts. It returns immediately, or as
// soon as the agent was started. An agent that was not started by then is refused.
func (l *lifetime) leave(e Ending) {
	l.deciding.Lock()
	defer l.deciding.Unlock()
	if l.isLeaving() {
		return
	}
	l.ending = e
	close(l.leaving)
}

func (l *lifetime) isLeaving() bool { return isClosed(l.leaving) }

// isClosed reports whether a channel that carries no values is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
