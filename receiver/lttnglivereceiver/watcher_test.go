// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttnglive"
)

// shop is a session of that name, with two events in a trace of its own. It is closed
// once it was read.
func shop(trace string) *lttnglive.Recording {
	s := newSynthetic(trace, "vpid", "vtid")
	s.name = "shop"
	s.class("shop:sold", "number")
	s.stream().packet(10).event(10, "shop:sold", 7, 7, 1).event(20, "shop:sold", 7, 7, 2)
	return s.recording(1)
}

// awaitLists waits for a list of sessions that is asked for from now on, and for what
// comes of it.
func (b *bed) awaitLists() {
	b.t.Helper()
	from := b.receiver.watcher.rounds.Load()
	b.await("lists of sessions", func() bool { return b.receiver.watcher.rounds.Load() > from+2 })
}

// A relay daemon that is started again counts sessions from 1 again.
func TestASessionWithTheIDAndNameOfOneBeforeTheRelayDaemonsRestartIsRead(t *testing.T) {
	r := newRelay(t, []*lttnglive.Recording{shop("first")}, lttnglive.RelayOptions{Again: true})
	b := newBed(t, reading(r.address()))
	b.awaitSaid("The session was closed")
	r.stop()
	r = newRelayAt(t, r.address(), []*lttnglive.Recording{shop("second")}, lttnglive.RelayOptions{Again: true})
	b.awaitRecords(4)
	b.await("its end", func() bool { return b.said.FilterMessage("The session was closed").Len() == 2 })

	// The same one, on another connection, has nothing new.
	r.hangUp()
	b.await("its end", func() bool { return b.said.FilterMessage("The session was closed").Len() == 3 })
	b.awaitLists()
	b.shutdown()
	assert.Len(t, b.records(), 4, "nothing is read twice")
	assert.Equal(t, 3, b.said.FilterMessage("The session was closed").Len(), "nor for every list")
}

// What is left of the session before may take longer to be handed on than the relay
// daemon's restart.
func TestASessionThatEndedAfterTheListConnectionDoesNotStandForALaterOne(t *testing.T) {
	w := newWatcher(unstartedBed(t).receiver.env)
	f := newFollower(w.env, lttnglive.Session{ID: 1})
	w.followers[sessionKey{id: 1}] = f
	w.conn, _ = net.Pipe()
	w.disconnect()
	assert.False(t, f.isReplaceable(), "it is read yet")
	f.over = true
	close(f.done)
	assert.True(t, f.isReplaceable())
}
