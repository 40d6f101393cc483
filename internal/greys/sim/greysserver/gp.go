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

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/gp"
)

// gpConn is a connection on which GP is spoken.
type gpConn struct {
	*Server
	life *life
	conn net.Conn
	// over is done when the connection is.
	over context.Context
	end  context.CancelFunc

	mu     sync.Mutex
	respID int32
	// silent says that nothing is said any more.
	silent bool
	out    []byte
}

// attendGP obeys requests until the client goes, or is silent for too long. first was read
// already.
func (s *Server) attendGP(l *life, conn net.Conn, first []byte) {
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

// request answers a request, or gives what answers it when it is called, which goes on until
// it has ended.
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
	case errors.Is(err, greys.ErrUnsupported):
		c.reply(r.SendID, gp.TypeUnsupported, []byte("{}"))
		return nil
	case err != nil:
		c.fail(r.SendID, err)
		return nil
	}
	c.options.Heard(commandText(command))
	return func() { c.obey(r.SendID, command) }
}

// commandText is a command as the console has it.
func commandText(command greys.Command) string {
	line, err := console.AppendLine(nil, command)
	if err != nil {
		return err.Error()
	}
	return string(line)
}

// fail says that a request failed.
func (c *gpConn) fail(sendID int32, err error) {
	c.reply(sendID, gp.Failed, []byte(err.Error()))
}

// outcome is what became of a reply.
type outcome uint8

const (
	told    outcome = iota // it was sent as it is
	spoiled                // it was not, and the request goes on
	ended                  // the request, or the connection, has ended with it
)

// reply sends a reply, or what goes wrong with it.
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
	became := c.spoil(fault, begin)
	if became != ended || len(c.out) > 0 {
		if !c.send() {
			return ended
		}
	}
	return became
}

func (c *gpConn) frame(sendID int32, code gp.ReturnCode, data []byte) {
	c.respID++
	c.out = gp.AppendAnswer(c.out, gp.Answer{SendID: sendID, RespID: c.respID, Code: code, Data: data})
}

// send writes what is to be sent.
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
