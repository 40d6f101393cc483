// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// A time by which all has to come outlives what is awaited later.
func TestAReadEndsAtTheTimeOfEndBy(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	defer time.AfterFunc(patience, func() { _ = near.Close() }).Stop()
	in := newInlet(near, controlBytes, controlBytes)
	in.endBy(time.Now())
	for _, until := range []time.Time{{}, time.Now().Add(time.Hour)} {
		_, _, err := in.next(fromAgent, until)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	in.endBy(time.Time{})
	go func() { _, _ = far.Write(bytefrog.Hello{Version: 1}.AppendTo(nil)) }()
	_, _, err := in.next(func(b []byte) (bytefrog.Message, int, error) { return bytefrog.DecodeFirst(b, bytefrog.MaxString) }, time.Time{})
	assert.NoError(t, err)
}

// Who connects when the guard is ending already has to be quick, too, and what he says first is
// the end of that.
func TestASilentConnectionAtTheLastCallDoesNotDelayTheEnd(t *testing.T) {
	for range 20 {
		g := silentGuard(t, "127.0.0.1:1")
		g.timing.hello, g.options.HandshakeTimeout = time.Millisecond, time.Hour
		near, far := net.Pipe()
		closing := time.AfterFunc(patience, func() { _ = near.Close() })
		g.stop()
		_, err := g.readFirst(newInlet(near, controlBytes, controlBytes), g.slots.AdmitAlways(near))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		closing.Stop()
		_ = far.Close()
	}
	g := silentGuard(t, "127.0.0.1:1")
	g.timing.hello = time.Hour
	near, far := net.Pipe()
	defer far.Close()
	g.stop()
	in := newInlet(near, controlBytes, controlBytes)
	go func() { _, _ = far.Write(bytefrog.Hello{Version: 1}.AppendTo(nil)) }()
	_, err := g.readFirst(in, g.slots.AdmitAlways(near))
	assert.NoError(t, err)
	assert.Zero(t, in.endsBy)
}

// silentGuard is a guard in front of a collector that nobody can connect to.
func silentGuard(t *testing.T, collector string) *Guard {
	o := DefaultOptions()
	o.Collectors = []string{collector}
	g, err := New(o)
	assert.NoError(t, err)
	return g
}
