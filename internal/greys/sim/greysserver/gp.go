// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// gpConn is a connection that speaks GP.
type gpConn struct {
	*Server
	life *life
	conn net.Conn
	// over ends with the connection.
	over context.Context
	end  context.CancelFunc

	mu     sync.Mutex
	respID int32
	// silent means that nothing is sent any more.
	silent bool
	out    []byte
}

// serveGP runs requests until the client disconnects or is idle for too long. The bytes first were read before.
func (s *Server) serveGP(l *life, conn net.Conn, first []byte) {
	over, end := context.WithCancel(l.over)
	c := &gpConn{Server: s, life: l, conn: conn, over: over, end: end}
	stop := context.AfterFunc(over, func() { _ = conn.Close() })
	defer stop()
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	requests := gp.NewRequests(io.MultiReader(bytes.NewReader(first), conn), gp.DefaultMaxFrame)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(s.options.SessionTimeout)); err != nil {
			return
		}
		r, err := requests.Next()
		if err != nil {
			return
		}
		if do := c.request(r); do != nil {
			work.Go(do)
		}
	}
}

// request answers a request, or returns a function that runs it to its end.
func (c *gpConn) request(r gp.Request) (do func()) {
	switch {
	case r.Version != c.options.ProtocolVersion:
		c.reply(r.SendID, gp.VersionUnsupported, fmt.Appendf(nil, `{"version":%q}`, c.options.Version))
		return nil
	case r.Type == gp.Heartbeat:
		c.reply(r.SendID, gp.Done, []byte("{}"))
		return nil
	}
	command, err := gp.ParseCommand(r, c.options.Codes)
	switch {
	case errors.Is(err, javamethods.ErrUnsupported):
		c.reply(r.SendID, gp.TypeUnsupported, []byte("{}"))
		return nil
	case err != nil:
		c.fail(r.SendID, err)
		return nil
	}
	c.options.OnCommand(commandText(command))
	return func() { c.runCommand(r.SendID, command) }
}

// commandText returns a command as a line of the console.
func commandText(command javamethods.Command) string {
	line, err := console.AppendLine(nil, command)
	if err != nil {
		return err.Error()
	}
	return string(line)
}

// fail reports that a request failed.
func (c *gpConn) fail(sendID int32, err error) {
	c.reply(sendID, gp.Failed, []byte(err.Error()))
}

// outcome is the result of a reply.
type outcome uint8

const (
	sent    outcome = iota // sent without a fault
	spoiled                // sent with a fault; the request continues
	ended                  // the request or the connection has ended
)

// reply sends a reply, or its fault.
func (c *gpConn) reply(sendID int32, code gp.ReturnCode, data []byte) outcome {
	pause(c.over, c.options.ReplyDelay)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent || c.over.Err() != nil {
		return ended
	}
	fault := c.nextFault()
	c.out = c.out[:0]
	switch fault {
	case Unasked:
		c.frame(-sendID, gp.Done, data)
	case Gap:
		c.respID += 7
	}
	begin := len(c.out)
	c.frame(sendID, code, data)
	result := c.spoil(fault, begin)
	if result != ended || len(c.out) > 0 {
		if !c.send() {
			return ended
		}
	}
	return result
}

func (c *gpConn) frame(sendID int32, code gp.ReturnCode, data []byte) {
	c.respID++
	c.out = gp.AppendAnswer(c.out, gp.Answer{SendID: sendID, RespID: c.respID, Code: code, Data: data})
}

// send writes the prepared bytes.
func (c *gpConn) send() bool {
	err := c.conn.SetWriteDeadline(time.Now().Add(c.options.WriteTimeout))
	if err == nil {
		_, err = c.conn.Write(c.out)
	}
	if err != nil {
		c.end()
	}
	return err == nil
}

// pause waits for some time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
