// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package connreader

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/testkit"
)

// pair returns a reader of a connection, and the peer's end of it.
func pair(t *testing.T, s Settings) (*Reader, net.Conn) {
	conn, peer := net.Pipe()
	t.Cleanup(func() { _, _ = conn.Close(), peer.Close() })
	return New(conn, s), peer
}

func control(b []byte) (bytefrog.Message, int, error) {
	return bytefrog.DecodeControl(b, bytefrog.MaxString)
}

var (
	heartbeat = bytefrog.Heartbeat{Mode: bytefrog.ModeTracing, SendBuffers: 7}
	report    = bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: strings.Repeat("c", 300)}
)

func TestMessagesAreReadWholeHoweverTheirBytesArrive(t *testing.T) {
	sent := report.AppendTo(heartbeat.AppendTo(nil))
	for piece := 1; piece <= len(sent); piece++ {
		r, peer := pair(t, Settings{Buffer: 4, MaxMessage: 1000})
		go func() {
			for b := sent; len(b) > 0; b = b[min(piece, len(b)):] {
				_, _ = peer.Write(b[:min(piece, len(b))])
			}
			_ = peer.Close()
		}()
		m, raw, err := r.Next(control, time.Time{})
		require.NoError(t, err)
		assert.Equal(t, heartbeat, m)
		assert.Equal(t, heartbeat.AppendTo(nil), raw)
		m, raw, err = r.Next(control, time.Time{})
		require.NoError(t, err)
		assert.Equal(t, report, m)
		assert.Equal(t, report.AppendTo(nil), raw)
		_, _, err = r.Next(control, time.Time{})
		assert.Equal(t, io.EOF, err)
	}
}

func TestBadDataHasItsPosition(t *testing.T) {
	beat := heartbeat.AppendTo(nil)
	for name, c := range map[string]struct {
		second []byte
		want   string
	}{
		"an unknown message":          {[]byte{byte(bytefrog.TypeHello)}, "pipe, byte 4: expected a message of a control connection (heartbeat, data break, class transformed, class ignored, class transform failed, error), got hello (0)"},
		"an end inside a message":     {beat[:2], "pipe, byte 6: expected the rest of heartbeat, got the end of the connection"},
		"a message that is too long":  {report.AppendTo(nil), "pipe, byte 4: expected a message of at most 64 bytes, got more"},
		"an end between two messages": {nil, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			r, peer := pair(t, Settings{Buffer: 8, MaxMessage: 64})
			go func() {
				_, _ = peer.Write(beat)
				_, _ = peer.Write(c.second)
				_ = peer.Close()
			}()
			_, _, err := r.Next(control, time.Time{})
			require.NoError(t, err)
			_, _, err = r.Next(control, time.Time{})
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestARefusedAgentsUnreadableBytesAreSkipped(t *testing.T) {
	for name, unreadable := range map[string][]byte{
		"an unknown message":         {byte(bytefrog.TypeHello)},
		"a message that is too long": append(report.AppendTo(nil), make([]byte, 64)...),
	} {
		t.Run(name, func(t *testing.T) {
			r, peer := pair(t, Settings{Buffer: 8, MaxMessage: 64})
			go func() {
				_, _ = peer.Write(unreadable)
				_, _ = peer.Write(heartbeat.AppendTo(nil))
				_, _ = peer.Write(heartbeat.AppendTo(nil)[:2])
				_ = peer.Close()
			}()
			m, err := r.NextReadable(control, time.Time{})
			require.NoError(t, err)
			assert.Equal(t, heartbeat, m)
			_, err = r.NextReadable(control, time.Time{})
			assert.Equal(t, io.EOF, err)
		})
	}
}

func TestTheRestOfAMessageMustArriveInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peer := pair(t, Settings{Buffer: 64, MaxMessage: 64, MessageTimeout: time.Minute})
		beat := heartbeat.AppendTo(nil)
		began := time.Now()
		go func() {
			time.Sleep(time.Hour)
			_, _ = peer.Write(beat[:2])
			time.Sleep(time.Minute + LastLook/2)
			_, _ = peer.Write(beat[2:])
			_, _ = peer.Write(beat[:2])
		}()
		_, _, err := r.Next(control, time.Time{})
		require.NoError(t, err, "one more read finds the rest")
		_, _, err = r.Next(control, time.Time{})
		assert.EqualError(t, err, "pipe, byte 6: expected the rest of heartbeat within 1m0s, got nothing more")
		assert.Equal(t, time.Hour+2*time.Minute+LastLook/2+LastLook, time.Since(began))
	})
}

func TestAReadEndsAtTheEarlierOfItsTimeAndEndBy(t *testing.T) {
	for name, incomplete := range map[string][]byte{"no byte": nil, "a part of a message": {byte(bytefrog.TypeHeartbeat)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, peer := pair(t, Settings{Buffer: 64, MessageTimeout: time.Hour})
				if incomplete != nil {
					go func() { _, _ = peer.Write(incomplete) }()
				}
				ends := func(endBy, until, want time.Duration) {
					began := time.Now()
					go func() {
						time.Sleep(time.Second)
						r.EndBy(after(began, endBy))
					}()
					_, _, err := r.Next(control, after(began, until))
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					assert.Equal(t, want, time.Since(began))
				}
				ends(2*time.Second, 0, 2*time.Second)
				ends(2*time.Second, time.Minute, time.Duration(0)) // that of before is over
				time.Sleep(time.Second)
				synctest.Wait()
				r.EndBy(time.Time{})
				ends(0, 3*time.Second, 3*time.Second)
				ends(5*time.Second, 3*time.Second, 3*time.Second)
			})
		})
	}
}

// after returns a time after another. Zero: never.
func after(t time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return t.Add(d)
}

func TestAConnectionThatWasTakenAwayIsNotUsed(t *testing.T) {
	r, peer := pair(t, Settings{Buffer: 64})
	var reading sync.WaitGroup
	reading.Go(func() {
		_, err := r.Read(time.Now(), time.Time{})
		assert.Equal(t, ErrTaken, err)
	})
	require.True(t, testkit.Happens(r.CaughtUp))
	conn := r.TakeAway()
	reading.Wait()
	<-r.Taken()
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	go func() { _, _ = peer.Write([]byte{1}) }()
	_, err := r.Read(time.Now(), time.Time{})
	assert.Equal(t, ErrTaken, err)
	_, err = conn.Read(make([]byte, 1))
	assert.NoError(t, err)
}

func TestWakeEndsOneRead(t *testing.T) {
	r, peer := pair(t, Settings{Buffer: 64})
	read := func() (int, error) { return r.Read(time.Now(), time.Time{}) }
	r.Wake()
	_, err := read()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it was woken before it began")
	woken := make(chan error)
	go func() {
		_, err := read()
		woken <- err
	}()
	require.True(t, testkit.Happens(r.CaughtUp))
	r.Wake()
	require.ErrorIs(t, <-woken, os.ErrDeadlineExceeded)
	go func() { _, _ = peer.Write([]byte{1}) }()
	n, err := read()
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	conn := r.TakeAway()
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	r.Wake()
	go func() { _, _ = peer.Write([]byte{1}) }()
	_, err = conn.Read(make([]byte, 1))
	assert.NoError(t, err, "Wake does not change the deadline of the next reader")
}

// A read that was woken is no last look for the rest of a message.
func TestAReaderThatIsWokenStillLooksForTheRestOfAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peer := pair(t, Settings{Buffer: 64, MessageTimeout: time.Second})
		go func() { _, _ = peer.Write([]byte{1}) }()
		_, err := r.Read(time.Now(), time.Time{})
		require.NoError(t, err)
		_, err = r.Read(time.Now(), time.Now().Add(time.Millisecond))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		time.Sleep(time.Minute)
		r.Wake()
		_, err = r.Read(time.Now(), time.Time{})
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, r.Overdue())
		_, err = r.Read(time.Now(), time.Time{})
		require.NoError(t, err)
		assert.Error(t, r.Overdue())
	})
}

func TestAReaderHasCaughtUpOnlyWhileItWaitsForMoreBytes(t *testing.T) {
	r, peer := pair(t, Settings{Buffer: 64})
	waits := make(chan bool, 3)
	r.OnWait(func() { waits <- r.CaughtUp() })
	assert.False(t, r.CaughtUp(), "the reader has not started")
	for range 2 {
		go func() { _, _ = peer.Write([]byte{1}) }()
		_, err := r.Read(time.Now(), time.Time{})
		require.NoError(t, err)
		assert.True(t, <-waits)
		assert.False(t, r.CaughtUp(), "the reader has a byte, and has not asked for more")
	}
}

func TestAResizedBufferStillHasItsUnreadBytes(t *testing.T) {
	r, peer := pair(t, Settings{Buffer: 4, MaxMessage: 10})
	go func() { _, _ = peer.Write([]byte("0123456789abcdef")) }()
	for len(r.Bytes()) < 10 {
		_, err := r.Read(time.Now(), time.Time{})
		require.NoError(t, err)
	}
	assert.Equal(t, "0123456789", string(r.Bytes()))
	r.Consume(3)
	r.Resize(100)
	assert.Equal(t, "3456789", string(r.Bytes()))
	assert.Equal(t, 100, r.Size())
	r.Resize(1)
	assert.Equal(t, 7, r.Size())
}

func TestAReadAllocatesNothing(t *testing.T) {
	r := New(endless{}, Settings{Buffer: 4096, MessageTimeout: time.Minute})
	r.OnWait(func() {})
	now := time.Now()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		n, err := r.Read(now, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		r.Consume(n)
	}))
}

// endless is a connection that always has bytes.
type endless struct{ net.Conn }

func (endless) Read(b []byte) (int, error) { return len(b), nil }
