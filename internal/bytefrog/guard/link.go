// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// link has the connections to a collector for one agent: one run there, from hello until the link is lost or closed.
// One goroutine writes and one reads each connection.
type link struct {
	address string
	index   int // of the collector in the list
	version uint8
	dial    func(ctx context.Context) (net.Conn, error)
	timeout time.Duration
	flow

	in *connreader.Reader // of the control connection
	// configuration is the collector's, and message the one in which it arrived.
	configuration bytefrog.AgentConfiguration
	message       bytefrog.Message
	// began is when start arrived: the run's clock begins then. early are the commands before it.
	began time.Time
	early []bytefrog.Command
	translation

	control *outlet
	opening sync.Mutex // of data
	data    []*outlet  // as many as configured; nil where none was opened
	reading sync.WaitGroup

	ctx    context.Context
	cancel context.CancelFunc
	untie  func() bool
	losing sync.Once
	// lost is closed when the link is lost, for the reason loss.
	lost chan struct{}
	loss loss
}

// loss is the reason of a lost link.
type loss struct {
	cause lossCause
	err   error
}

func (l loss) Error() string { return l.err.Error() }

// lossCause is a kind of loss, for the log.
type lossCause string

const (
	lostConnection lossCause = "connection"    // closed, reset, or it could not be opened
	lostSilence    lossCause = "silence"       // it read nothing for too long
	lostMemory     lossCause = "memory"        // more data waits than --memory allows
	lostTotal      lossCause = "total_memory"  // all agents together hold too much, and this one holds most
	lostByError    lossCause = "error_message" // it sent an error message: it shuts down, or has given the run up
	lostBadData    lossCause = "bad_data"      // it sent bad data
)

// connectionLoss returns the loss of a link whose connection ended with an error.
func connectionLoss(err error) loss {
	cause := lostConnection
	if errors.Is(err, io.EOF) {
		err = errors.New("the collector closed a connection")
	}
	var bad *connreader.BadData
	if errors.As(err, &bad) {
		cause = lostBadData
	}
	return loss{cause, err}
}

// refusal: a collector refuses the agent.
type refusal struct{ text string }

func (r *refusal) Error() string { return "the collector refuses the agent: " + r.text }

// stayAfter lets the link outlive the context that it was made in, unless that is over. From then
// on answers may take the time timeout.
func (l *link) stayAfter(timeout time.Duration) {
	l.untie()
	l.timeout = timeout
}

// refusalTime is how long a collector may take to send the reason of a refusal.
const refusalTime = 2 * time.Second

// hello connects, sends hello, and reads the configuration.
func (l *link) hello() error {
	conn, err := l.connect()
	if err != nil {
		return err
	}
	l.in = newReader(conn, 2*maxConfiguration)
	if err := l.configure(conn); err != nil {
		_ = conn.Close()
		return err
	}
	return nil
}

// connect opens a connection.
func (l *link) connect() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, l.timeout)
	defer cancel()
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	// With a small buffer the guard soon sees how fast the collector reads.
	if tcp, ok := socket.Below(conn).(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(writeBuffer)
	}
	return conn, nil
}

// writeBuffer is the size of the system's buffer for a connection to a collector, in bytes. The
// system reports room only when a good part of the buffer is free. With a large one a slow
// collector would seem to read nothing for long.
const writeBuffer = 128 * kib

func (l *link) configure(conn net.Conn) error {
	stop := context.AfterFunc(l.ctx, func() { _ = conn.Close() })
	defer stop()
	if err := hq.Write(conn, bytefrog.Hello{Version: l.version}); err != nil {
		return err
	}
	m, _, err := l.in.Next(fromCollector(l.version), time.Now().Add(l.timeout))
	if err != nil {
		return fmt.Errorf("waiting for the configuration: %w", err)
	}
	switch m := m.(type) {
	case bytefrog.ErrorMessage:
		return &refusal{m.Text}
	case bytefrog.Configuration, bytefrog.ConfigurationV2:
		l.message = m
		if l.configuration, err = bytefrog.ParseAgentConfiguration(m); err != nil {
			return err
		}
	default:
		return fmt.Errorf("expected configuration, got %v", m.Type())
	}
	if l.configuration.DataConnections == 0 {
		return l.awaitRefusal()
	}
	if n := l.configuration.DataConnections; n < 0 || n > maxDataConnections {
		return fmt.Errorf("expected a configuration with 1 to %d data connections, got %d", maxDataConnections, n)
	}
	l.data = make([]*outlet, l.configuration.DataConnections)
	share := l.flood / 2 / int64(len(l.data))
	l.queue, l.rise = min(l.queue, share), min(riseBytes, share)
	return nil
}

// maxDataConnections bounds the data connections that a collector can configure.
const maxDataConnections = 64

// awaitRefusal reads the reason of a refusal. A collector sends it after it has started the agent to trace nothing.
func (l *link) awaitRefusal() error {
	until := time.Now().Add(refusalTime)
	for {
		m, _, err := l.in.Next(fromCollector(l.version), until)
		if err != nil {
			return &refusal{"it sent a configuration that traces nothing, and no reason"}
		}
		if message, ok := m.(bytefrog.ErrorMessage); ok {
			return &refusal{message.Text}
		}
	}
}

// maxEarly bounds the commands before start. Two make sense.
const maxEarly = 16

// awaitStart waits for start. Other commands in front of it are kept until the guard obeys the
// link.
func (l *link) awaitStart() error {
	stop := context.AfterFunc(l.ctx, func() { _ = l.in.Conn().Close() })
	defer stop()
	until := time.Now().Add(l.timeout)
	for len(l.early) <= maxEarly {
		m, _, err := l.in.Next(fromCollector(l.version), until)
		if err != nil {
			return fmt.Errorf("waiting for start: %w", err)
		}
		switch m := m.(type) {
		case bytefrog.ErrorMessage:
			return &refusal{m.Text}
		case bytefrog.Command:
			if m.Of == bytefrog.TypeStart {
				l.began = time.Now()
				return nil
			}
			l.early = append(l.early, m)
		default:
			return fmt.Errorf("expected start, got %v", m.Type())
		}
	}
	return fmt.Errorf("expected start after at most %d other commands", maxEarly)
}

// begin starts the writer and the reader of the control connection. The reader calls obey for each
// message; a loss that it returns ends the link.
func (l *link) begin(obey func(m bytefrog.Message) *loss) {
	l.progressed()
	l.unopened.Add(1)
	l.control = newOutlet(&l.flow, false, l.writeFailed)
	l.control.start(func() (net.Conn, error) { return l.in.Conn(), l.in.Conn().SetWriteDeadline(time.Time{}) })
	l.reading.Add(1)
	go func() {
		defer l.reading.Done()
		l.lose(l.readControl(obey))
	}()
}

// readControl reads the collector's messages until the link is lost.
func (l *link) readControl(obey func(m bytefrog.Message) *loss) loss {
	for _, m := range l.early {
		if why := obey(m); why != nil {
			return *why
		}
	}
	for {
		m, _, err := l.in.Next(fromCollector(l.version), time.Time{})
		if err != nil {
			return connectionLoss(err)
		}
		if why := obey(m); why != nil {
			return *why
		}
	}
}

// openData opens data connection i, unless it is open. It does not wait.
func (l *link) openData(i int) *outlet {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.data[i] == nil {
		l.unopened.Add(1)
		l.data[i] = newOutlet(&l.flow, true, l.writeFailed)
		l.data[i].start(l.joinRun)
	}
	return l.data[i]
}

// joinRun opens a data connection. It is read until it ends, though the collector sends nothing.
func (l *link) joinRun() (net.Conn, error) {
	conn, err := l.connect()
	if err != nil {
		return nil, fmt.Errorf("opening a data connection: %w", err)
	}
	stop := context.AfterFunc(l.ctx, func() { _ = conn.Close() })
	defer stop()
	in := newReader(conn, bytefrog.MaxMessageSize(bytefrog.MaxString))
	err = hq.Write(conn, bytefrog.DataHello{Run: l.configuration.RunID})
	if err == nil {
		err = l.awaitReply(in)
	}
	if err == nil {
		err = conn.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.reading.Add(1)
	go func() {
		defer l.reading.Done()
		l.watch(in)
	}()
	return conn, nil
}

func (l *link) awaitReply(in *connreader.Reader) error {
	m, _, err := in.Next(fromCollector(l.version), time.Now().Add(l.timeout))
	switch m := m.(type) {
	case nil:
		return fmt.Errorf("waiting for the reply to data hello: %w", err)
	case bytefrog.DataHelloReply:
		return nil
	case bytefrog.ErrorMessage:
		return &refusal{m.Text}
	default:
		return fmt.Errorf("expected data hello reply, got %v", m.Type())
	}
}

// watch waits for an end of a data connection that the guard did not cause.
func (l *link) watch(in *connreader.Reader) {
	m, _, err := in.Next(fromCollector(l.version), time.Time{})
	switch message, isError := m.(bytefrog.ErrorMessage); {
	case errors.Is(err, net.ErrClosed):
	case isError:
		l.lose(loss{lostByError, errors.New("error from the collector: " + message.Text)})
	case err != nil:
		l.lose(connectionLoss(err))
	default:
		l.lose(loss{lostBadData, fmt.Errorf("expected nothing from the collector on a data connection, got %v", m.Type())})
	}
}

// lose gives the link up: waiting data is dropped, and all connections are closed. Only the first
// reason counts.
func (l *link) lose(why loss) {
	l.losing.Do(func() {
		l.loss = why
		close(l.lost)
		l.cancel()
		l.wakeUp()
	})
}

// writeFailed gives the link up after an error of a write.
func (l *link) writeFailed(err error) { l.lose(connectionLoss(err)) }

// isLost reports whether the link was lost.
func (l *link) isLost() bool { return isClosed(l.lost) }

// discard closes a link that is lost or not needed, and waits for its goroutines.
func (l *link) discard() {
	l.lose(loss{lostConnection, net.ErrClosed})
	if l.in != nil {
		_ = l.in.Conn().Close()
	}
	for _, o := range l.outlets() {
		o.abandon()
	}
	l.writing.Wait()
	l.reading.Wait()
}

// outlets returns the outlets of all connections.
func (l *link) outlets() []*outlet {
	l.opening.Lock()
	defer l.opening.Unlock()
	var all []*outlet
	for _, o := range append([]*outlet{l.control}, l.data...) {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// riseAll makes room for more data on all connections.
func (l *link) riseAll() {
	for _, o := range l.outlets() {
		o.rise()
	}
}

// wakeAll wakes all goroutines that wait for room.
func (l *link) wakeAll() {
	for _, o := range l.outlets() {
		o.wake()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
