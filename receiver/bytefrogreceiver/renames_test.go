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

func TestTheReceiverSendsARenameThatIsTheLastMessage(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(append(namesOne(), calls(0, 1)...), thread(9, 5000, "late")...))
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.True(t, slices.ContainsFunc(s.renames, func(r callevent.Rename) bool { return r.Name == "late" }), "%+v", s.renames)
}

func TestALaterNameCanArriveBeforeAnEarlierOneOfAnotherConnection(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	at := func(sequence, time uint32) []byte { return enter(sequence, 1, 3, time) }
	p.write(append(append(method(1, "run"), thread(3, 200, "grown")...), at(5, 200)...))
	b.awaitReceived(1)
	other.write(append(append(thread(3, 100, "born"), at(1, 100)...), at(3, 100)...))
	b.awaitReceived(3)
	p.write(append(append(append(at(0, 90), at(2, 100)...), at(4, 199)...), at(6, 300)...))
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	for sequence, want := range []string{"born", "born", "born", "born", "born", "grown", "grown"} {
		assert.Equal(t, want, s.events[uint64(sequence)].thread, "event %d", sequence)
	}
}

func TestNothingIsLostIfAnAgentRenamesThreadsWithTheLongestNames(t *testing.T) {
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
