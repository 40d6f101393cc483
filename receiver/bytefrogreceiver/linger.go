// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"container/list"
	"net"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// lingering are the agents that were sent an error message and have not closed their connections
// yet. A debugger can stop an agent for as long as it likes. If its connections are closed before
// it has read the message, its program can hang for ever. So the connections are read, and the
// data is dropped, until the agent closes them. The rest of their runs is over.
//
// A connection ends at the latest when limits.max_connections needs room, the oldest first; when
// TCP's keep-alive, which is on for a listener of Go's, finds the machine gone; when more data has
// arrived than any agent has; and with the shutdown.
type lingering struct {
	run       *receiverkit.Run
	telemetry *telemetry.Telemetry
	timing    *timing
	// connections counts the memory of those that linger.
	connections *connectionMemory
	// most is how many bytes of a connection are read.
	most int64

	mu sync.Mutex
	// byAge are the *discarder that were not cut. Those of an agent stand next to one another, its
	// control connection last.
	byAge list.List
}

func newLingering(run *receiverkit.Run, own *telemetry.Telemetry, t *timing, connections *connectionMemory) *lingering {
	return &lingering{run: run, telemetry: own, timing: t, connections: connections, most: maxDiscarded}
}

const (
	// discardBytes is how much of a lingering connection is read at once.
	discardBytes = 4 << 10
	// maxDiscarded is how much of one is read at all: far more than an agent can send before it
	// reads the error message, as long as it runs.
	maxDiscarded = 1 << 30
)

// Why a lingering connection was closed before its agent did so.
const (
	cutForRoom    = "max_connections"
	cutAtShutdown = "shutdown"
	cutForBytes   = "bytes"
)

// lingerer is one agent.
type lingerer struct {
	// data are its data connections, if it has any, and control is the other. Nothing else uses
	// them any more.
	data    []net.Conn
	control net.Conn
	// answered says that the agent has answered suspend: it is alive.
	answered bool
	// gone, if it is set, is called when all its connections have ended.
	gone func()

	since time.Time
	// connections are its data connections, then its control connection.
	connections []*discarder
}

// discarder reads one connection.
type discarder struct {
	conn net.Conn
	// place is nil when it is no longer one of those by age.
	place *list.Element
	// ended is closed when the connection is.
	ended chan struct{}
}

// begin lets an agent linger.
func (l *lingering) begin(a lingerer) {
	a.since = time.Now()
	l.mu.Lock()
	for _, conn := range append(a.data, a.control) {
		d := &discarder{conn: conn, ended: make(chan struct{})}
		d.place = l.byAge.PushBack(d)
		a.connections = append(a.connections, d)
	}
	l.mu.Unlock()
	l.telemetry.Lingering(int64(len(a.connections)))
	for _, d := range a.connections {
		l.run.Go(func() { l.discard(d) })
	}
	l.run.Go(func() { l.awaitParting(&a) })
}

// discard reads a connection until it ends.
func (l *lingering) discard(d *discarder) {
	defer close(d.ended)
	defer l.telemetry.Lingering(-1)
	defer l.connections.hold()()
	_ = d.conn.SetReadDeadline(time.Time{})
	buffer := make([]byte, discardBytes)
	for rest := l.most; ; {
		n, err := d.conn.Read(buffer)
		l.telemetry.Discarded(int64(n))
		if err != nil {
			break
		}
		if rest -= int64(n); rest < 0 {
			l.cut(d, cutForBytes)
			return
		}
	}
	l.remove(d)
	_ = d.conn.Close()
}

// remove removes a connection from those by age, and reports false when it was removed before.
func (l *lingering) remove(d *discarder) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.place == nil {
		return false
	}
	l.byAge.Remove(d.place)
	d.place = nil
	return true
}

// cut closes a connection that its agent has not closed.
func (l *lingering) cut(d *discarder, reason string) {
	if l.remove(d) {
		l.telemetry.LingeringCut(reason)
		_ = d.conn.Close()
	}
}

// makeRoom closes the n oldest connections, if there are as many, and reports
// whether it did.
func (l *lingering) makeRoom(n int) bool {
	if l.len() < n {
		return false
	}
	for range n {
		l.mu.Lock()
		oldest := l.byAge.Front()
		l.mu.Unlock()
		if oldest == nil {
			break // It has ended meanwhile, which makes room too.
		}
		l.cut(oldest.Value.(*discarder), cutForRoom)
	}
	return true
}

func (l *lingering) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byAge.Len()
}

// awaitParting waits for an agent to close its connections, and closes at a shutdown those that
// it has not closed. Each agent has the time parting since it was sent error.
func (l *lingering) awaitParting(a *lingerer) {
	if a.gone != nil {
		defer a.gone()
	}
	last := len(a.connections) - 1
	hq.Parting{
		Stopping: l.run.Serving.Done(), Over: l.run.Delivering.Done(), Answered: a.answered, Control: l.timing.control,
		Grace: func() time.Duration { return time.Until(a.since.Add(l.timing.parting)) },
	}.Await(&parting{lingering: l, data: a.connections[:last], control: a.connections[last:]})
}

// parting is the connections of an agent that lingers.
type parting struct {
	lingering     *lingering
	data, control []*discarder
}

// Gone returns what is closed when the agent has closed its connections.
func (p *parting) Gone() (data []<-chan struct{}, control <-chan struct{}) {
	for _, d := range p.data {
		data = append(data, d.ended)
	}
	return data, p.control[0].ended
}

// CloseData closes the data connections that the agent has not closed.
func (p *parting) CloseData() {
	for _, d := range p.data {
		p.lingering.cut(d, cutAtShutdown)
	}
}

// CloseControl closes the control connection, unless the agent has closed it.
func (p *parting) CloseControl() { p.lingering.cut(p.control[0], cutAtShutdown) }
