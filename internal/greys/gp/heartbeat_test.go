// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

func TestAnyReplyAnswersAHeartbeat(t *testing.T) {
	c, p, _ := serving(t, Config{Heartbeat: time.Millisecond, MaxUnanswered: 1000})
	for _, answer := range []struct {
		code ReturnCode
		data string
	}{{Done, ""}, {Done, "{}"}, {TypeUnsupported, ""}, {Failed, "{"}} {
		r := p.request(Heartbeat)
		assert.Equal(t, "{}", string(r.Data))
		p.answer(r.SendID, answer.code, answer.data)
	}
	stats := c.Stats()
	assert.Zero(t, stats.Unasked)
	assert.Zero(t, stats.Dropped)
}

func TestUnansweredHeartbeatsEndTheConnection(t *testing.T) {
	c, p, served := serving(t, Config{Heartbeat: time.Millisecond, MaxUnanswered: 3})
	watching := run(t.Context(), t, c, javamethods.ClassesCommand{Class: pattern(t, "a")})
	heartbeats := 0
	for {
		r, err := p.requests.Next()
		if err != nil {
			break
		}
		if r.Type == Heartbeat {
			heartbeats++
		}
	}
	assert.Equal(t, 3, heartbeats)
	require.ErrorIs(t, served(), ErrSilent)
	require.ErrorIs(t, watching.end(), ErrSilent)
	require.ErrorContains(t, served(), "GP server pipe: the server answers no heartbeats: 3 in a row, one every 1ms")
	assert.Equal(t, uint64(3), c.Stats().Unanswered)
}

func TestAnEndlessReplyAnswersNoHeartbeat(t *testing.T) {
	for name, length := range map[string]string{"of an allowed length": "\x00\xff\xff\xff", "too long": "\x3f\xff\xff\xff"} {
		t.Run(name, func(t *testing.T) {
			c, p, served := serving(t, Config{Heartbeat: time.Millisecond})
			watching := run(t.Context(), t, c, monitor(t))
			id := p.requestAmongHeartbeats(Monitor)
			go func() {
				for { // the server reads heartbeats
					if _, err := p.requests.Next(); err != nil {
						return
					}
				}
			}()
			header := AppendAnswer(nil, Answer{SendID: id, RespID: 1, Code: Continued})
			_, err := p.Write(append(header[:answerHeader-4], length...))
			for err == nil {
				_, err = p.Write([]byte(" "))
			}
			require.ErrorIs(t, served(), ErrSilent)
			require.Error(t, watching.end())
		})
	}
}

// requestAmongHeartbeats returns the next request of a type. It answers the heartbeats before it.
func (p *peer) requestAmongHeartbeats(want RequestType) (id int32) {
	for {
		r, err := p.requests.Next()
		require.NoError(p.t, err)
		if r.Type == want {
			return r.SendID
		}
		p.answer(r.SendID, Done, "{}")
	}
}

// stuck is a closed connection whose writes block until the test releases them.
type stuck struct {
	net.Conn
	first        sync.Once
	writes, goOn chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.first.Do(func() { close(s.writes) })
	<-s.goOn
	return len(b), nil
}

func (s *stuck) Read([]byte) (int, error) {
	<-s.writes
	return 0, io.EOF
}

func (s *stuck) Close() error                     { return nil }
func (s *stuck) SetWriteDeadline(time.Time) error { return nil }
func (s *stuck) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

func TestServeReturnsAfterItsHeartbeat(t *testing.T) {
	conn := &stuck{writes: make(chan struct{}), goOn: make(chan struct{})}
	c := NewClient(conn, Config{Heartbeat: time.Millisecond})
	served := make(chan error, 1)
	go func() { served <- c.Serve(t.Context()) }()
	receive(t, c.ended)
	for range 10_000 {
		runtime.Gosched()
		require.Empty(t, served, "a heartbeat is being written")
	}
	close(conn.goOn)
	require.ErrorIs(t, receive(t, served), ErrClosed)
}

func TestAnAnswerCountsForEarlierHeartbeats(t *testing.T) {
	c, _ := connected(t, Config{})
	c.beats = []int32{5, 6, 7}
	require.NoError(t, c.handleAnswer(Answer{SendID: 6}, nil))
	assert.Equal(t, []int32{7}, c.beats)
	require.NoError(t, c.handleAnswer(Answer{SendID: 5}, nil))
	assert.Equal(t, uint64(1), c.Stats().Unasked)
}
