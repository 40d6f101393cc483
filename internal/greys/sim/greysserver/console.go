// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/greys/console"
)

// consoleConn is a connection to the text console: a session that runs one command at a time, as in the released
// server. It loses a line that arrives while a command runs. Of lines that arrive together it runs a random one.
type consoleConn struct {
	*Server
	life *life
	conn net.Conn
	id   int64
	// over ends with the connection.
	over context.Context
	end  context.CancelFunc
	// work waits for running commands.
	work sync.WaitGroup

	mu sync.Mutex
	// loud means that the session draws prompts and reports how much a pattern matched.
	loud bool
	// abort ends the running command; nil means that none runs.
	abort context.CancelFunc
	// mute means that nothing is sent any more.
	mute bool
	// halved means that a reply was cut in half: a client cannot parse a table that follows it.
	halved atomic.Bool
}

// Bytes that end a running command: ctrl-D and ctrl-X.
const (
	ctrlD = console.EndOfReply
	ctrlX = 0x18
)

// maxLine is the maximum length of a line in bytes.
const maxLine = 64 << 10

// serveConsole runs lines until the client disconnects or is idle for too long. The beginning of the first line was
// read before.
func (s *Server) serveConsole(l *life, conn net.Conn, id int64, begin []byte) {
	over, end := context.WithCancel(l.over)
	c := &consoleConn{Server: s, life: l, conn: conn, id: id, over: over, end: end}
	stop := context.AfterFunc(over, func() { _ = conn.Close() })
	defer stop()
	defer c.work.Wait()
	defer end()
	line := c.read(nil, begin)
	buffer := make([]byte, 4<<10)
	for over.Err() == nil && len(line) < maxLine {
		if err := conn.SetReadDeadline(time.Now().Add(s.options.SessionTimeout)); err != nil {
			return
		}
		n, err := conn.Read(buffer)
		line = c.read(line, buffer[:n])
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && c.running():
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.send([]byte(console.SessionTimedOut + "\n"))
			return
		default:
			return
		}
	}
}

// read appends bytes to a line, runs complete lines, and returns the rest.
func (c *consoleConn) read(line, data []byte) (rest []byte) {
	var lines []string
	for _, b := range data {
		switch b {
		case '\n':
			lines = append(lines, string(line))
			line = line[:0]
		case ctrlD, ctrlX:
			c.interrupt()
		case '\r':
		default:
			line = append(line, b)
		}
	}
	rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, l := range lines {
		c.begin(l)
	}
	return bytes.Clone(line)
}

func (c *consoleConn) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.abort != nil
}

// interrupt ends the running command.
func (c *consoleConn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abort != nil {
		c.abort()
	}
}

// begin runs the command of a line, unless a command runs.
func (c *consoleConn) begin(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abort != nil {
		c.life.update(func(t *Truth) { t.LostLines++ })
		return
	}
	aborted, abort := context.WithCancel(c.over)
	c.abort = abort
	c.options.OnCommand(line)
	c.work.Go(func() {
		defer c.finish()
		r := &consoleRun{consoleConn: c, aborted: aborted}
		r.run(line)
		if aborted.Err() == nil {
			pause(aborted, c.options.EndDelay)
		}
	})
}

// finish ends a command.
func (c *consoleConn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last []byte
	if c.loud {
		last = console.AppendPrompt(last)
	}
	if !c.mute {
		c.write(append(last, console.EndOfReply))
	}
	c.abort()
	c.abort = nil
}

// write writes bytes and reports whether the connection still works.
func (c *consoleConn) write(data []byte) bool {
	err := c.conn.SetWriteDeadline(time.Now().Add(c.options.WriteTimeout))
	if err == nil {
		_, err = c.conn.Write(data)
	}
	if err != nil {
		c.end()
	}
	return err == nil
}

// send sends a text, or its fault.
func (c *consoleConn) send(data []byte) outcome {
	pause(c.over, c.options.ReplyDelay)
	if c.over.Err() != nil {
		return ended
	}
	data, result := c.spoil(c.nextFault(), c.options.Locale.text(data))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mute || !c.write(data) {
		return ended
	}
	return result
}

// spoil applies a fault to a text.
func (c *consoleConn) spoil(fault Fault, data []byte) ([]byte, outcome) {
	half := len(data) / 2
	switch fault {
	case Close:
		c.end()
		return nil, ended
	case Restart:
		c.Restart()
		return nil, ended
	case Silence:
		c.mu.Lock()
		c.mute = true
		c.mu.Unlock()
		return nil, ended
	case Cut:
		c.mu.Lock()
		c.write(data[:half])
		c.mu.Unlock()
		c.end()
		return nil, ended
	case Failure:
		return []byte("Command execution failed.\n"), ended
	case Lost:
		return nil, ended
	case EndInData:
		return bytes.Join([][]byte{data[:half], data[half:]}, []byte{console.EndOfReply}), spoiled
	case Half:
		c.halved.Store(true)
		return data[:half], spoiled
	case LongLine:
		return append(append(bytes.Repeat([]byte("x"), 1<<20), '\n'), data...), spoiled
	}
	return data, sent
}
