// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package socket

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

// pair returns a watched connection and its client.
func pair(t *testing.T) (conn net.Conn, client *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	watching := Watch(listener)
	t.Cleanup(func() { _ = watching.Close() })
	dialed, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = dialed.Close() })
	conn, err = watching.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn, dialed.(*net.TCPConn)
}

func TestAConnectionIsDrainedOnlyWhileItsReaderWaitsForMoreBytes(t *testing.T) {
	conn, client := pair(t)
	assert.False(t, Drained(conn), "the reader has not started")
	read := make(chan int)
	more := make(chan struct{})
	go func() {
		b := make([]byte, 10)
		for range more {
			n, _ := conn.Read(b)
			read <- n
		}
	}()
	drained := func() bool { return Drained(conn) }
	for range 3 {
		more <- struct{}{}
		require.True(t, testkit.Happens(drained), "the reader waits")
		_, err := client.Write([]byte("abc"))
		require.NoError(t, err)
		require.Equal(t, 3, <-read)
		assert.False(t, Unread(conn))
		assert.False(t, Drained(conn), "the reader has the bytes, and has not asked for more")
	}
	close(more)
}

func TestOnWaitIsCalledWhenTheConnectionIsDrained(t *testing.T) {
	conn, client := pair(t)
	drained := make(chan bool, 10)
	OnWait(conn, func() { drained <- Drained(conn) })
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 10)
		for {
			if _, err := conn.Read(b); err != nil {
				return
			}
		}
	}()
	assert.True(t, <-drained, "nothing has arrived")
	_, err := client.Write([]byte("abc"))
	require.NoError(t, err)
	assert.True(t, <-drained, "all was read")
	require.NoError(t, client.Close())
	<-read
}

func TestAWatchedConnectionReadsLikeAnyOther(t *testing.T) {
	b := make([]byte, 10)
	t.Run("data in parts", func(t *testing.T) {
		conn, client := pair(t)
		_, err := client.Write(make([]byte, 25))
		require.NoError(t, err)
		require.NoError(t, client.CloseWrite())
		all, err := io.ReadAll(io.LimitReader(conn, 100))
		require.NoError(t, err)
		assert.Len(t, all, 25)
		n, err := conn.Read(b)
		assert.Zero(t, n)
		assert.Equal(t, io.EOF, err)
		n, err = conn.Read(nil)
		assert.Zero(t, n)
		assert.NoError(t, err, "of no bytes")
	})
	t.Run("to its deadline", func(t *testing.T) {
		conn, _ := pair(t)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
		n, err := conn.Read(b)
		assert.Zero(t, n)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Regexp(t, "^read tcp .*: i/o timeout$", err.Error())
	})
	t.Run("to its reset", func(t *testing.T) {
		conn, client := pair(t)
		require.NoError(t, client.SetLinger(0))
		require.NoError(t, client.Close())
		_, err := conn.Read(b)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		assert.Regexp(t, "^read tcp .*: connection reset by peer$", err.Error())
	})
	t.Run("to its close", func(t *testing.T) {
		conn, _ := pair(t)
		require.NoError(t, conn.Close())
		_, err := conn.Read(b)
		require.ErrorIs(t, err, net.ErrClosed)
		assert.Regexp(t, "^read tcp .*: use of closed network connection$", err.Error())
	})
	t.Run("without allocation", func(t *testing.T) {
		conn, client := pair(t)
		out := make([]byte, 10)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			_, _ = client.Write(out)
			_, _ = io.ReadFull(conn, b)
		}))
	})
	t.Run("and Below finds the TCP connection", func(t *testing.T) {
		conn, _ := pair(t)
		_, ok := Below(conn).(*net.TCPConn)
		assert.True(t, ok)
	})
}
