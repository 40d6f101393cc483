// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// openData opens the data connections and sends data hello on each. It returns false if one was refused or lost.
func (r *run) openData() bool {
	count := int(r.configuration.DataConnections)
	if count > 0 && r.options.DataConnections > 0 {
		count = r.options.DataConnections
	}
	for i := range count {
		if err := r.openOne(); err != nil {
			r.noteError(fmt.Errorf("data connection %d: %w", i, err))
			r.fail(fmt.Sprintf("data connection %d: %v", i, err))
			return false
		}
	}
	return true
}

// openOne opens one data connection and waits for the reply to its hello.
func (r *run) openOne() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-r.final:
			cancel()
		case <-ctx.Done():
		}
	}()
	// The real agent also tries only once.
	conn, err := r.options.Dial(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.data = append(r.data, conn)
	final := r.life.final()
	r.mu.Unlock()
	if final {
		conn.Close() // the connection has sent nothing
		return net.ErrClosed
	}
	if _, err := conn.Write(bytefrog.DataHello{Run: r.configuration.RunID}.AppendTo(nil)); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(r.options.StartTimeout)) // an error means a lost connection, which the read reports
	defer conn.SetReadDeadline(time.Time{})
	o := &orders{conn: conn, version: r.options.Version}
	switch m, err := o.next(); m := m.(type) {
	case nil:
		if isTimeout(err) {
			r.change(func(l *life) {
				if !l.final() {
					l.hang(fmt.Sprintf("no data hello reply within %v", r.options.StartTimeout))
				}
			})
		}
		return fmt.Errorf("expected data hello reply: %s", lossText(err))
	case bytefrog.DataHelloReply:
		return nil
	case bytefrog.ErrorMessage:
		return fmt.Errorf("the HQ refused it: %s", m.Text)
	default:
		return fmt.Errorf("expected data hello reply, got %v", m.Type())
	}
}

// startSenders starts the goroutines of each data connection.
func (r *run) startSenders() {
	r.mu.Lock()
	r.sending = len(r.data)
	r.mu.Unlock()
	for i, conn := range r.data {
		r.background.Add(2)
		go func() {
			defer r.background.Done()
			r.send(i, conn)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sending--
			r.changed.Broadcast()
		}()
		go func() {
			defer r.background.Done()
			r.watch(i, conn)
		}()
	}
}

// send writes buffers from the queue until the queue is closed, then closes the connection. It returns early if the
// connection is lost.
func (r *run) send(i int, conn net.Conn) {
	for {
		select {
		case <-r.final:
			return
		case <-r.dead:
			conn.Close() // the HQ may have closed it already
			return
		case b, open := <-r.queue:
			if !open {
				conn.Close() // the HQ may have closed it already
				return
			}
			r.awaitThaw()
			n, err := conn.Write(b.Data)
			r.bytes.Add(uint64(n))
			if err != nil {
				r.lostData(fmt.Sprintf("data connection %d was lost (%v)", i, err))
				return
			}
			r.mu.Lock()
			r.events.Add(uint64(b.Events))
			r.buffers.Add(1)
			r.pool.put(b)
			r.changeLocked(func(l *life) { l.sent() })
			r.mu.Unlock()
		}
	}
}

// watch waits for the HQ to close a data connection: the HQ sends nothing there.
func (r *run) watch(i int, conn net.Conn) {
	_, err := conn.Read(make([]byte, 1))
	if errors.Is(err, net.ErrClosed) {
		return // the agent itself closed it
	}
	r.awaitThaw()
	reason := "the HQ sent bytes on a data connection"
	if err != nil {
		reason = lossText(err)
	}
	r.lostData(fmt.Sprintf("data connection %d was lost (%s)", i, reason))
}

// lostData handles the loss of a data connection. Its meaning is known only when the control connection has stayed open
// for a while.
func (r *run) lostData(reason string) {
	settle := false
	r.change(func(l *life) { settle = l.lostData(reason) })
	if !settle {
		return
	}
	r.options.Log("%s", reason)
	time.AfterFunc(r.options.Settle, func() {
		r.awaitThaw()
		r.change(func(l *life) { l.dataLossSettled(reason) })
	})
}
