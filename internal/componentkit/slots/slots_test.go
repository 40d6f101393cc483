// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// played is a connection with only an address.
type played struct {
	net.Conn
	remote net.TCPAddr
	unread bool
	closed bool
}

func (p *played) RemoteAddr() net.Addr { return &p.remote }

func (p *played) Close() error {
	p.closed = true
	return nil
}

func from(ip string) *played { return &played{remote: net.TCPAddr{IP: net.ParseIP(ip), Port: 1}} }

// bed has slots with a clock that a test sets.
type bed struct {
	*Slots
	now    time.Time
	closed map[Reason]int
	said   *observer.ObservedLogs
}

func newBed(o Options) *bed {
	core, said := observer.New(zap.InfoLevel)
	b := &bed{now: time.Unix(1000, 0), closed: map[Reason]int{}, said: said}
	o.Now = func() time.Time { return b.now }
	o.Unread = func(c net.Conn) bool { return c.(*played).unread }
	o.Closed = func(r Reason) { b.closed[r]++ }
	o.Logger = zap.New(core)
	b.Slots = New(o)
	return b
}

// admit admits a connection and makes it older than the grace.
func (b *bed) admit(t *testing.T, p *played) *Slot {
	t.Helper()
	slot, full := b.Admit(p)
	require.Nil(t, full)
	b.now = b.now.Add(time.Second)
	return slot
}

func TestBelowTheLimitNoConnectionIsClosed(t *testing.T) {
	b := newBed(Options{Max: 3})
	for range 3 {
		b.admit(t, from("10.0.0.1"))
	}
	assert.Equal(t, 3, b.Open())
	assert.Empty(t, b.closed)
}

func TestTheVictimIs(t *testing.T) {
	type step struct {
		ip   string
		sent bool
		done bool
	}
	for name, c := range map[string]struct {
		steps  []step
		victim int
	}{
		"the oldest of one address": {[]step{{ip: "10.0.0.1"}, {ip: "10.0.0.1"}, {ip: "10.0.0.1"}}, 0},
		"of the address that has most": {
			[]step{{ip: "10.0.0.1"}, {ip: "10.0.0.2"}, {ip: "10.0.0.2"}}, 1},
		"of the address that has most without a handshake": {
			[]step{{ip: "10.0.0.1", done: true}, {ip: "10.0.0.1", done: true}, {ip: "10.0.0.1"}, {ip: "10.0.0.2"}, {ip: "10.0.0.2"}}, 3},
		"the oldest of all, where each address has one": {
			[]step{{ip: "10.0.0.3"}, {ip: "10.0.0.1"}, {ip: "10.0.0.2"}}, 0},
		"silent, where as many have sent a part": {[]step{{ip: "10.0.0.1", sent: true}, {ip: "10.0.0.1"}}, 1},
		"unfinished, where more have sent a part": {
			[]step{{ip: "10.0.0.1"}, {ip: "10.0.0.1", sent: true}, {ip: "10.0.0.1", sent: true}}, 1},
		"never established": {[]step{{ip: "10.0.0.1", done: true}, {ip: "10.0.0.1"}}, 1},
		"of the IPv6 network that has most": {
			[]step{{ip: "2001:db8:0:1::1"}, {ip: "2001:db8:0:2::1"}, {ip: "2001:db8:0:2::2"}}, 1},
		"of the IPv4 address that has most, in either notation": {
			[]step{{ip: "10.0.0.1"}, {ip: "10.0.0.2"}, {ip: "::ffff:10.0.0.2"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(Options{Max: len(c.steps)})
			var conns []*played
			for _, s := range c.steps {
				p := from(s.ip)
				slot := b.admit(t, p)
				if s.sent {
					slot.Sent()
				}
				if s.done {
					require.True(t, slot.Establish())
				}
				conns = append(conns, p)
			}
			b.now = b.now.Add(time.Second)
			b.admit(t, from("10.9.9.9"))
			for i, p := range conns {
				assert.Equal(t, i == c.victim, p.closed, "connection %d", i)
			}
			assert.Equal(t, len(c.steps), b.Open())
		})
	}
}

// A connection with an unread hello is not silent.
func TestASilentConnectionWithUnreadFirstBytesIsNotClosed(t *testing.T) {
	b := newBed(Options{Max: 3})
	honest := from("10.0.0.1")
	first := b.admit(t, honest)
	honest.unread = true
	second := from("10.0.0.1")
	b.admit(t, second)
	b.admit(t, from("10.0.0.1"))
	b.admit(t, from("10.0.0.1"))
	assert.False(t, honest.closed)
	assert.True(t, second.closed)
	assert.True(t, first.Establish())
}

// Many agents start on one host, and the flood is spread over many.
func TestOtherAddressesLoseOldConnectionsBeforeTheFullestLosesYoungOnes(t *testing.T) {
	b := newBed(Options{Max: 200})
	var flood []*Slot
	for i := range 180 {
		slot, _ := b.Admit(from(fmt.Sprintf("10.0.1.%d", i%18)))
		flood = append(flood, slot)
	}
	b.now = b.now.Add(Grace - 1)
	var agents []*Slot
	for range 20 {
		slot, _ := b.Admit(from("10.0.0.1"))
		agents = append(agents, slot)
	}
	for i := range 30 {
		_, full := b.Admit(from(fmt.Sprintf("10.0.1.%d", i%18)))
		require.Nil(t, full)
	}
	for _, a := range agents {
		assert.False(t, a.Gone())
	}
	for i, f := range flood {
		assert.Equal(t, i < 30, f.Gone(), "connection %d of the flood", i)
	}
}

func TestAnAddressWithMoreThanAnEighthOfTheSlotsLosesYoungConnections(t *testing.T) {
	b := newBed(Options{Max: 80})
	var others []*Slot
	for i := range 69 {
		slot, _ := b.Admit(from(fmt.Sprintf("10.0.1.%d", i)))
		others = append(others, slot)
	}
	first, _ := b.Admit(from("10.0.0.1"))
	for range 11 {
		_, _ = b.Admit(from("10.0.0.1"))
	}
	assert.True(t, first.Gone())
	for _, o := range others {
		assert.False(t, o.Gone())
	}
}

func TestAHalfHelloWithAnUnreadRestIsNotClosed(t *testing.T) {
	b := newBed(Options{Max: 2})
	honest, other := from("10.0.0.1"), from("10.0.0.1")
	b.admit(t, honest).Sent()
	b.admit(t, other).Sent()
	b.now = b.now.Add(time.Second)
	honest.unread = true
	b.admit(t, from("10.0.0.1"))
	assert.False(t, honest.closed)
	assert.True(t, other.closed)
}

func TestFewYoungConnectionsAreNotClosedForAnother(t *testing.T) {
	b := newBed(Options{Max: 2, Setting: "limits.max_connections", Beyond: 1})
	first, _ := b.Admit(from("10.0.0.1"))
	_, _ = b.Admit(from("10.0.0.1"))
	b.now = b.now.Add(Grace - 1)
	slot, full := b.Admit(from("10.0.0.2"))
	assert.Nil(t, slot)
	assert.EqualError(t, full, "limits.max_connections is reached (2)")
	// AdmitBeyond admits it, and the next one gets the slot of the oldest.
	_, full = b.AdmitBeyond(from("10.0.0.2"))
	assert.Nil(t, full)
	assert.Empty(t, b.closed)
	_, full = b.AdmitBeyond(from("10.0.0.3"))
	assert.Nil(t, full)
	assert.True(t, first.Gone())
	assert.Equal(t, 3, b.Open())
	assert.Equal(t, map[Reason]int{Silent: 1}, b.closed)
}

func TestManyYoungConnectionsAreAFlood(t *testing.T) {
	b := newBed(Options{Max: crowd + 1})
	first, _ := b.Admit(from("10.0.0.1"))
	for i := range crowd {
		_, full := b.Admit(from(fmt.Sprintf("10.0.0.%d", i+2)))
		require.Nil(t, full)
	}
	_, full := b.Admit(from("10.0.0.1"))
	assert.Nil(t, full)
	assert.True(t, first.Gone())
}

func TestOneAddressHasAtMostItsShare(t *testing.T) {
	b := newBed(Options{Max: 4, PerAddress: 2, SettingPerAddress: "limits.max_connections_per_address"})
	first := b.admit(t, from("10.0.0.1"))
	second := b.admit(t, from("10.0.0.1"))
	third := b.admit(t, from("10.0.0.1"))
	assert.True(t, first.Gone(), "its own oldest makes room")
	require.True(t, second.Establish())
	require.True(t, third.Establish())
	_, full := b.AdmitBeyond(from("10.0.0.1"))
	assert.EqualError(t, full, "limits.max_connections_per_address is reached (2)")
	b.admit(t, from("10.0.0.2"))
	assert.Equal(t, 3, b.Open())
	second.Release()
	b.admit(t, from("10.0.0.1"))
}

func TestAConnectionThatRestsCanLoseItsSlotAgain(t *testing.T) {
	b := newBed(Options{Max: 1})
	slot := b.admit(t, from("10.0.0.1"))
	require.True(t, slot.Establish())
	_, full := b.AdmitBeyond(from("10.0.0.2"))
	require.NotNil(t, full)
	slot.Rest()
	_, full = b.AdmitBeyond(from("10.0.0.2"))
	require.Nil(t, full)
	assert.False(t, slot.Establish())
	assert.Equal(t, map[Reason]int{Unfinished: 1}, b.closed)
}

func TestWithTooManyOpenFilesTheNextVictimIsClosed(t *testing.T) {
	b := newBed(Options{Max: 10})
	established := b.admit(t, from("10.0.0.1"))
	require.True(t, established.Establish())
	assert.False(t, b.Evict())
	b.admit(t, from("10.0.0.1"))
	assert.True(t, b.Evict())
	assert.False(t, b.Evict())
	assert.Equal(t, map[Reason]int{NoFiles: 1}, b.closed)
	assert.False(t, established.Gone())
}

func TestOnlyOneLineIsLoggedForABurst(t *testing.T) {
	b := newBed(Options{Max: 1, Setting: "max_connections"})
	for range 5 {
		b.admit(t, from("10.0.0.1"))
	}
	lines := b.said.All()
	require.Len(t, lines, 1)
	fields := lines[0].ContextMap()
	assert.Equal(t, "max_connections", fields["setting"])
	assert.EqualValues(t, 1, fields["limit"])
	assert.Equal(t, "10.0.0.1:1", fields["peer"])
}

func TestAfterShutNoConnectionWaits(t *testing.T) {
	b := newBed(Options{Max: 3})
	busy, quiet := from("10.0.0.1"), from("10.0.0.1")
	slot := b.admit(t, busy)
	require.True(t, slot.Establish())
	b.admit(t, quiet)
	b.Shut()
	assert.True(t, quiet.closed)
	assert.False(t, busy.closed)
	slot.Rest()
	assert.True(t, busy.closed)
	late := from("10.0.0.1")
	_, _ = b.Admit(late)
	assert.True(t, late.closed)
	assert.Zero(t, b.Open())
}

func TestFreedHasATokenWhenASlotIsFree(t *testing.T) {
	b := newBed(Options{Max: 1})
	slot := b.admit(t, from("10.0.0.1"))
	slot.Release()
	slot.Release()
	<-b.Freed()
	assert.Zero(t, b.Open())
	assert.Empty(t, b.addresses)
}

// obvious is a slow model of the order, with all connections in one list.
type obvious struct {
	max   int
	clock int
	all   []*entry
}

type entry struct {
	key   string
	state state
	order int
	conn  *played
	slot  *Slot
}

func (m *obvious) waiting(key string, of ...state) (found []*entry) {
	for _, e := range m.all {
		for _, s := range of {
			if e.key == key && e.state == s {
				found = append(found, e)
			}
		}
	}
	return found
}

func oldest(of []*entry) *entry {
	first := of[0]
	for _, e := range of {
		if e.order < first.order {
			first = e
		}
	}
	return first
}

func (m *obvious) victim() *entry {
	var best []*entry
	for _, e := range m.all {
		its := m.waiting(e.key, silent, unfinished)
		if len(its) == 0 {
			continue
		}
		if len(its) > len(best) || len(its) == len(best) && oldest(its).order < oldest(best).order {
			best = its
		}
	}
	if len(best) == 0 {
		return nil
	}
	quiet, begun := m.waiting(best[0].key, silent), m.waiting(best[0].key, unfinished)
	if len(begun) > len(quiet) {
		return oldest(begun)
	}
	return oldest(quiet)
}

func (m *obvious) move(e *entry, to state) {
	m.clock++
	e.state, e.order = to, m.clock
}

func TestTheVictimIsTheSameAsInASlowModel(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		m := &obvious{max: 1 + random.IntN(12)}
		b := newBed(Options{Max: m.max, Grace: -1})
		for step := range 300 {
			if len(m.all) > 0 && random.IntN(2) == 0 {
				e := m.all[random.IntN(len(m.all))]
				switch random.IntN(4) {
				case 0:
					e.slot.Sent()
					if e.state == silent {
						m.move(e, unfinished)
					}
				case 1:
					e.slot.Establish()
					if e.state != closed {
						e.state = established
					}
				case 2:
					e.slot.Rest()
					if e.state == established {
						m.move(e, unfinished)
					}
				case 3:
					e.slot.Release()
					e.state = closed
				}
				continue
			}
			e := &entry{key: fmt.Sprintf("10.0.0.%d", random.IntN(4)), state: closed}
			e.conn = from(e.key)
			open := 0
			for _, other := range m.all {
				if other.state != closed {
					open++
				}
			}
			var expected *entry
			if open == m.max {
				expected = m.victim()
			}
			var full *Full
			e.slot, full = b.Admit(e.conn)
			if open == m.max && expected == nil {
				require.NotNil(t, full, "seed %d, step %d", seed, step)
				continue
			}
			require.Nil(t, full, "seed %d, step %d", seed, step)
			if expected != nil {
				require.True(t, expected.conn.closed, "seed %d, step %d", seed, step)
				expected.state = closed
			}
			m.all = append(m.all, e)
			m.move(e, silent)
			for _, other := range m.all {
				if taken := other.slot.Gone(); taken != (other.state == closed) {
					t.Fatalf("seed %d, step %d: taken %v, expected %v", seed, step, taken, !taken)
				}
			}
		}
	}
}
