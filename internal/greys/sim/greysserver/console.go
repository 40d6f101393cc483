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

// consoleConn is a connection to the text console: a session, in which one command runs at a
// time, as in the released server. A line that comes while one runs is lost; of lines that
// come together all but one are, whichever.
type consoleConn struct {
	*Server
	life *life
	conn net.Conn
	id   int64
	// over is done when the connection is.
	over context.Context
	end  context.CancelFunc
	// work is what runs.
	work sync.WaitGroup

	mu sync.Mutex
	// loud says that a prompt is drawn, and how much a pattern matched is said.
	loud bool
	// abort ends the command that runs; nil: none does.
	abort context.CancelFunc
	// mute says that nothing is said any more.
	mute bool
	// halved says that half of a reply was sent: nobody understands a table that follows it.
	halved atomic.Bool
}

// Bytes that end a command that runs: ctrl-D and ctrl-X.
const (
	ctrlD = console.EndOfReply
	ctrlX = 0x18
)

// maxLine is how many bytes a line may have.
const maxLine = 64 << 10

// attendConsole obeys lines until the client goes, or is silent for too long. The beginning
// of the first was read already.
func (s *Server) attendConsole(l *life, conn net.Conn, id int64, begin []byte) {
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
			c.say([]byte(console.SessionTimedOut + "\n"))
			return
		default:
			return
		}
	}
}

// read takes bytes in behind those of a line that has begun, and gives what is left.
func (c *consoleConn) read(line, data []byte) (left []byte) {
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

// interrupt ends the command that runs.
func (c *consoleConn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abort != nil {
		c.abort()
	}
}

// begin runs the command of a line, unless one runs.
func (c *consoleConn) begin(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abort != nil {
		c.life.note(func(t *Truth) { t.LostLines++ })
		return
	}
	aborted, abort := context.WithCancel(c.over)
	c.abort = abort
	c.options.Heard(line)
	c.work.Go(func() {
		defer c.finish()
		r := &consoleRun{consoleConn: c, aborted: aborted}
		r.run(line)
		if aborted.Err() == nil {
			pause(aborted, c.options.EndDelay)
		}
	})
}

// finish says that a command has ended.
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

// write writes bytes, as long as the connection lasts, and reports whether it did.
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

// say sends what belongs together, or what goes wrong with it.
func (c *consoleConn) say(data []byte) outcome {
	pause(c.over, c.options.ReplyDelay)
	if c.over.Err() != nil {
		return ended
	}
	data, became := c.spoil(c.nextFault(), c.options.Locale.text(data))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mute || !c.write(data) {
		return ended
	}
	return became
}

// spoil does a fault to what is to be said.
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
	return data, told
}
