// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// shop returns a session of that name, with two events in its own trace. It is closed after it was read.
func shop(trace string) *lttnglive.Recording {
	s := synthetic.New(trace, "vpid", "vtid")
	s.Name = "shop"
	s.Class("shop:sold", "number")
	s.Stream().Packet(10).Event(10, "shop:sold", 7, 7, 1).Event(20, "shop:sold", 7, 7, 2)
	return s.Recording(1)
}

// shopNumber returns such a session with its own ID and name.
func shopNumber(i int) *lttnglive.Recording {
	r := shop(fmt.Sprintf("trace %08d", i))
	r.Session.ID, r.Session.Name = uint64(i+1), fmt.Sprint("shop", i)
	for j := range r.Streams {
		r.Streams[j].ID += uint64(1000 * i)
	}
	return r
}

// awaitLists waits for a new list of sessions, and for its effects.
func (b *bed) awaitLists() {
	b.t.Helper()
	from := b.receiver.watcher.rounds.Load()
	b.await("lists of sessions", func() bool { return b.receiver.watcher.rounds.Load() > from+2 })
}

// A restarted relay daemon numbers sessions from 1 again.
func TestASessionWithTheIDAndNameOfOneBeforeARestartIsRead(t *testing.T) {
	r := newRelay(t, []*lttnglive.Recording{shop("first")}, lttnglive.RelayOptions{Restart: true})
	b := newBed(t, reading(r.address()))
	b.awaitSaid("The session was closed")
	r.stop()
	r = newRelayAt(t, r.address(), []*lttnglive.Recording{shop("second")}, lttnglive.RelayOptions{Restart: true})
	b.awaitRecords(4)
	b.await("its end", func() bool { return b.said.FilterMessage("The session was closed").Len() == 2 })

	// The same session, on another connection, has nothing new.
	r.hangUp()
	b.await("its end", func() bool { return b.said.FilterMessage("The session was closed").Len() == 3 })
	b.awaitLists()
	b.shutdown()
	assert.Len(t, b.records(), 4, "nothing is read twice")
	assert.Equal(t, 3, b.said.FilterMessage("The session was closed").Len(), "nor for every list")
}

// endingSession is a session that ends when the test sets done.
type endingSession struct {
	session.Session
	done, closed bool
}

func (s *endingSession) IsDone() bool    { return s.done }
func (s *endingSession) WasClosed() bool { return s.closed }

// The delivery of the previous session may take longer than the relay daemon's restart.
func TestASessionThatEndedAfterTheListConnectionDoesNotReplaceALaterOne(t *testing.T) {
	r := unstartedBed(t).receiver
	w := newWatcher(r.env, r.config, func(func()) {})
	ended := &endingSession{}
	f := &watchedSession{runningSession: ended}
	w.sessions[sessionKey{id: 1}] = f
	w.conn, _ = net.Pipe()
	w.disconnect()
	assert.False(t, f.isReplaceable(), "it is read yet")
	ended.done, ended.closed = true, true
	assert.True(t, f.isReplaceable())
}

const notLive = "A session is not read: it was not created with a live timer: lttng create --live"

// A relay daemon may list other sessions each time.
func TestSessionsThatCannotBeReadAreLoggedRarely(t *testing.T) {
	const lists, sessions = 5, 1000
	b := unstartedBed(t)
	now := time.Unix(1, 0)
	b.receiver.kit.Now = func() time.Time { return now }
	w := newWatcher(b.receiver.env, b.receiver.config, func(func()) {})
	list := func(from int) (all []lttnglive.Session) {
		for i := range sessions {
			all = append(all, lttnglive.Session{ID: uint64(from + i), Host: "vm", Name: "shop"})
		}
		return all
	}
	for i := range lists {
		w.readListed(list(i * sessions))
		assert.Len(t, w.warned, sessions, "those of lists before are forgotten")
	}
	assert.Equal(t, 1, b.saidAloud(notLive))
	assert.Equal(t, lists*sessions, b.said.FilterMessage(notLive).Len(), "debug lines contain each")
	now = now.Add(logline.Pause)
	w.readListed(list((lists - 1) * sessions))
	assert.Equal(t, 1, b.saidAloud(notLive), "it is logged once for each session")
	w.readListed(list(0))
	assert.Equal(t, 2, b.saidAloud(notLive))
	w.readListed(nil)
	assert.Empty(t, w.warned)
}

func TestShortSessionsAreLoggedRarely(t *testing.T) {
	const sessions = session.SessionsLogged + 5
	var recordings []*lttnglive.Recording
	for i := range sessions {
		recordings = append(recordings, shopNumber(i))
	}
	r := newRelay(t, recordings, lttnglive.RelayOptions{})
	now := time.Unix(1, 0)
	b := unstartedBed(t, reading(r.address()))
	b.receiver.kit.Now = func() time.Time { return now }
	require.NoError(t, b.component().Start(t.Context(), b.host))
	t.Cleanup(b.shutdown)
	for _, line := range []string{"The session is attached", "The session was closed"} {
		b.await(line, func() bool { return b.said.FilterMessage(line).Len() == sessions })
		assert.Equal(t, session.SessionsLogged, b.saidAloud(line), line)
	}
}

func TestAtMostMaxSessionsAreReadTogether(t *testing.T) {
	const most, sessions = 2, 5
	var recordings []*lttnglive.Recording
	for i := range sessions {
		recording := shopNumber(i)
		recording.End = time.Hour // from its attachment on
		for j := range recording.Streams {
			recording.Streams[j].End = recording.End
		}
		recordings = append(recordings, recording)
	}
	var clock handClock
	r := newRelay(t, recordings, lttnglive.RelayOptions{Clock: clock.read, Restart: true})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Limits.MaxSessions = most })
	said := b.awaitSaid("A session is not read: limits.max_sessions is reached")
	assert.Equal(t, zapcore.WarnLevel, said.Level)
	for read := most; ; read = min(read+most, sessions) {
		b.awaitRecords(2 * read)
		b.awaitLists()
		assert.Equal(t, read, b.said.FilterMessage("The session is attached").Len())
		assert.LessOrEqual(t, len(b.receiver.watcher.active()), most)
		if read == sessions {
			break
		}
		clock.move(clock.read() + time.Hour)
	}
}

func TestAPatternThatMatchesNoSessionIsLoggedOnce(t *testing.T) {
	r := newRelay(t, []*lttnglive.Recording{shop("first")}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Sessions = []string{"shop", "*/shop", "vm/none"} })
	b.awaitRecords(2)
	b.awaitLists()
	b.shutdown()
	const line = "No session matches a pattern of the setting sessions yet: patterns are for host/name"
	var said []any
	for _, l := range b.said.FilterMessage(line).All() {
		said = append(said, l.ContextMap()["pattern"])
		assert.Equal(t, []any{"vm/shop"}, l.ContextMap()["names"])
	}
	assert.Equal(t, []any{"shop", "vm/none"}, said)
	assert.Equal(t, 2, b.saidAloud(line))
}
