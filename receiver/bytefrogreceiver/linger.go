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
// yet. A debugger can stop an agent for any time. If its connections are closed before it has read the
// message, its program can hang forever. So the connections are read, and the data is dropped, until
// the agent closes them. The rest of their runs is over. This type has the connections; the registry
// counts the same agents by run ID. Options.Linger in sessions.go enters an agent in both, and
// lingerer.gone removes it from the registry.
//
// The receiver closes a connection earlier in these cases:
//   - limits.max_connections needs room: the oldest connections are closed.
//   - TCP's keep-alive, which is on for listeners of Go, finds the machine gone.
//   - More data has arrived than any agent has.
//   - The time of the shutdown is over.
type lingering struct {
	receiver  *receiverkit.Run
	telemetry *telemetry.Telemetry
	timing    *timing
	// connections counts the memory of those that linger.
	connections *connectionMemory
	// most is how many bytes of a connection are read.
	most int64

	mu sync.Mutex
	// byAge has the *discarder of all open connections. Those of an agent are adjacent, with its control
	// connection last.
	byAge list.List
}

func newLingering(run *receiverkit.Run, own *telemetry.Telemetry, t *timing, connections *connectionMemory) *lingering {
	return &lingering{receiver: run, telemetry: own, timing: t, connections: connections, most: maxDiscarded}
}

const (
	// discardBytes is the size of the buffer of a lingering connection.
	discardBytes = 4 << 10
	// maxDiscarded bounds the bytes that are read of a connection: far more than a running agent can
	// send before it reads the error message.
	maxDiscarded = 1 << 30
)

// Reasons for which the receiver closes a lingering connection.
const (
	cutForRoom    = "max_connections"
	cutAtShutdown = "shutdown"
	cutForBytes   = "bytes"
)

// lingerer is one agent.
type lingerer struct {
	// data has its data connections, and control is its control connection. Nothing else uses them.
	data    []net.Conn
	control net.Conn
	// answered: the agent has answered suspend, so it is alive.
	answered bool
	// gone, unless nil, is called when all connections have ended.
	gone func()

	since time.Time
	// connections are its data connections, then its control connection.
	connections []*discarder
}

// discarder reads one connection.
type discarder struct {
	conn net.Conn
	// place is its place in byAge; nil: it was removed.
	place *list.Element
	// ended is closed when the connection is closed.
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
		l.receiver.Go(func() { l.discard(d) })
	}
	l.receiver.Go(func() { l.awaitParting(&a) })
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

// remove removes a connection from byAge. It reports false if the connection was removed before.
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

// makeRoom closes the n oldest connections, unless there are fewer, and reports whether it did.
func (l *lingering) makeRoom(n int) bool {
	if l.len() < n {
		return false
	}
	for range n {
		l.mu.Lock()
		oldest := l.byAge.Front()
		l.mu.Unlock()
		if oldest == nil {
			break // the last one has ended meanwhile, which makes room too
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
		Stopping: l.receiver.Serving.Done(), Over: l.receiver.Delivering.Done(), Answered: a.answered, Control: l.timing.control,
		Grace: func() time.Duration { return time.Until(a.since.Add(l.timing.parting)) },
	}.Await(&parting{lingering: l, data: a.connections[:last], control: a.connections[last:]})
}

// parting is the connections of an agent that lingers.
type parting struct {
	lingering     *lingering
	data, control []*discarder
}

// Gone returns channels that are closed when the agent has closed its connections.
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
