// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// Each fault occurs once, at its place. A viewer that reconnects reads everything.
func TestAViewerReadsEverythingAfterAFault(t *testing.T) {
	for name, c := range map[string]struct {
		kind   lttngrelay.FaultKind
		offset int // of the reply at which it ends
		err    error
	}{
		"hang-up":  {lttngrelay.HangUp, 0, lttnglive.ErrClosed},
		"stall":    {lttngrelay.Stall, -1, lttnglive.ErrTimeout},
		"announce": {lttngrelay.Announce, 12, lttnglive.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			source := open(t, lttngdata.CaptureFile(t, "cygok"))
			r := serve(t, source, lttngrelay.Options{Restart: true, Fault: lttngrelay.Fault{Kind: c.kind, After: 3, Times: 1}})
			v := view(t, r.address, lttnglive.ViewerOptions{Timeout: 300 * time.Millisecond})
			err := v.read()
			require.ErrorIs(t, err, c.err)
			var transfer *lttnglive.TransferError
			require.ErrorAs(t, err, &transfer)
			assert.True(t, transfer.Reply)
			if c.offset >= 0 {
				assert.Equal(t, c.offset, transfer.Offset)
			} else {
				assert.Greater(t, transfer.Offset, 12)
			}
			packets := 0
			for _, p := range v.packets {
				packets += len(p)
			}
			assert.Equal(t, 3, packets)
			require.NoError(t, v.conn.Close())

			again := view(t, r.address, lttnglive.ViewerOptions{})
			require.NoError(t, again.read())
			assert.Equal(t, source.Events, again.events)
			require.NoError(t, again.conn.Close())
			r.wait()
			assert.Equal(t, 1, r.Stats().Faults)
			assert.Equal(t, 1, r.Stats().Broken)
			assert.Equal(t, 2, r.Stats().Viewers)
		})
	}
}

// lines collects log lines of a server.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) log(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

func TestAServerEndsWhenItsContextDoes(t *testing.T) {
	var said lines
	r := serve(t, open(t, lttngdata.CaptureFile(t, "cygok")), lttngrelay.Options{
		Forever: true, Restart: true, Log: said.log, Fault: lttngrelay.Fault{Kind: lttngrelay.Stall, Times: 1},
	})
	stalled := view(t, r.address, lttnglive.ViewerOptions{})
	read := make(chan error, 1)
	go func() { read <- stalled.read() }()
	require.True(t, testkit.Happens(func() bool { return r.Stats().Faults == 1 }))
	idle, err := net.Dial("tcp", r.address)
	require.NoError(t, err)
	defer idle.Close()
	require.True(t, testkit.Happens(func() bool { return r.Stats().Viewers == 2 }))
	r.stop()
	r.wait()
	require.ErrorIs(t, <-read, lttnglive.ErrClosed)
	assert.Zero(t, r.Stats().Broken, "it was the server that went")
	assert.Contains(t, said.text.String(), "connected")
	assert.Contains(t, said.text.String(), "disconnected")
}

func TestViewersThatStayAreDisconnected(t *testing.T) {
	r := serve(t, open(t, lttngdata.CaptureFile(t, "cygok")), lttngrelay.Options{Linger: time.Millisecond})
	v := view(t, r.address, lttnglive.ViewerOptions{})
	_ = v.read() // it may be disconnected before it reads the end
	r.wait()
	assert.EqualValues(t, 245, v.events)
}

// After a fault, a viewer may not reconnect. Then some packets are never read.
func TestAfterAFaultAServerDoesNotWaitForEver(t *testing.T) {
	for _, kind := range []lttngrelay.FaultKind{lttngrelay.HangUp, lttngrelay.Stall, lttngrelay.Announce} {
		r := serve(t, open(t, lttngdata.CaptureFile(t, "cygok")), lttngrelay.Options{
			Restart: true, Linger: time.Millisecond, Fault: lttngrelay.Fault{Kind: kind, After: 1, Times: 1},
		})
		v := view(t, r.address, lttnglive.ViewerOptions{Timeout: 100 * time.Millisecond})
		require.Error(t, v.read())
		require.NoError(t, v.conn.Close())
		r.wait()
		assert.Equal(t, 1, r.Stats().Faults)
		assert.Equal(t, 1, r.Stats().Viewers)
	}
}

func TestAViewerThatViolatesTheProtocolIsCountedAndLogged(t *testing.T) {
	var said lines
	r := serve(t, open(t, lttngdata.CaptureFile(t, "cygok")), lttngrelay.Options{Log: said.log})
	conn, err := net.Dial("tcp", r.address)
	require.NoError(t, err)
	_, err = conn.Write(make([]byte, 16))
	require.NoError(t, err)
	require.True(t, testkit.Happens(func() bool { return r.Stats().Broken == 1 }))
	require.NoError(t, conn.Close())
	r.stop()
	r.wait()
	assert.Contains(t, said.text.String(), "viewer "+conn.LocalAddr().String()+": ")
}

func TestInvalidOptionsOfAServerAreAnError(t *testing.T) {
	_, err := lttngrelay.NewServer(open(t, lttngdata.CaptureFile(t, "cygok")), lttngrelay.Options{Minor: 99})
	assert.ErrorContains(t, err, "minor version")
}

func TestABrokenListenerIsAnError(t *testing.T) {
	server, err := lttngrelay.NewServer(open(t, lttngdata.CaptureFile(t, "cygok")), lttngrelay.Options{})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	assert.ErrorIs(t, server.Serve(t.Context(), listener), net.ErrClosed)
}

func TestAddressesForViewers(t *testing.T) {
	session := lttnglive.Session{Host: "vm", Name: "it"}
	for ip, want := range map[string]string{
		"127.0.0.1": "net://127.0.0.1:5344/host/vm/it",
		"::1":       "net://[::1]:5344/host/vm/it",
		"0.0.0.0":   "net://localhost:5344/host/vm/it",
		"::":        "net://localhost:5344/host/vm/it",
	} {
		assert.Equal(t, want, lttngrelay.Address(&net.TCPAddr{IP: net.ParseIP(ip), Port: 5344}, session))
	}
}
