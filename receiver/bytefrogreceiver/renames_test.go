// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// The last rename on a connection has the best known position.
func TestARenameThatIsTheLastMessage(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(append(namesOne(), calls(0, 1)...), thread(9, 5000, "late")...))
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.True(t, slices.ContainsFunc(s.renames, func(r callevent.Rename) bool { return r.Name == "late" && !r.Provisional }), "%+v", s.renames)
}

// A name can be read before an earlier one, which came on another connection.
func TestNamesThatOvertakeEachOther(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	at := func(sequence, time uint32) []byte { return enter(sequence, 1, 3, time) }
	p.write(append(append(method(1, "run"), thread(3, 200, "grown")...), at(5, 200)...))
	b.awaitReceived(1)
	p.write(at(7, 200))
	b.awaitReceived(2)
	other.write(append(append(thread(3, 100, "born"), at(1, 100)...), at(3, 100)...))
	b.awaitReceived(4)
	for i, e := range [][]byte{at(0, 100), at(2, 100), at(4, 200), at(6, 200), at(8, 300)} {
		p.write(e)
		b.awaitReceived(uint64(5 + i))
	}
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	for sequence, want := range []string{"born", "born", "born", "born", "grown", "grown", "grown", "grown", "grown"} {
		assert.Equal(t, want, s.events[uint64(sequence)].thread, "event %d", sequence)
	}
}

// No event is lost if an agent renames its threads again and again with the longest names.
func TestLongNamesFillBatches(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.Batch.MaxBytes = callevent.MinBatchBytes })
	a := connect(b, 1)
	p := a.join()
	p.write(method(1, "run"))
	long := strings.Repeat("x", bytefrog.MaxString-1)
	for i := range uint32(40) {
		p.write(append(thread(3, i, string(rune('a'+i))+long), enter(i, 1, 3, i)...))
	}
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 40)
	assert.Len(t, s.renames, 40)
}
