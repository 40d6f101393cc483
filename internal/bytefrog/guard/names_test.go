// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

func remembered(n *names, t translation) []bytefrog.Message {
	var all []bytefrog.Message
	n.sendAll(t, func(m []byte) {
		message, _, _ := bytefrog.DecodeData(m, bytefrog.MaxString)
		all = append(all, message)
	})
	return all
}

func TestTheLastNameOfEachIsRemembered(t *testing.T) {
	n := someNames()
	for _, m := range []bytefrog.Message{
		bytefrog.MapMethod{Method: 1, Signature: "a"},
		bytefrog.MapException{Exception: 1, Name: "e"},
		bytefrog.MapThreadName{Thread: 1, Time: 5, Name: "first"},
		bytefrog.MapMethod{Method: 2, Signature: "b"},
		bytefrog.MapMethod{Method: 1, Signature: "other"},
		bytefrog.MapThreadName{Thread: 1, Time: 9, Name: "last"},
		bytefrog.MapThreadName{Thread: 1, Time: 7, Name: "late word of a name in between"},
	} {
		n.remember(m.AppendTo(nil))
	}
	assert.Equal(t, []bytefrog.Message{
		bytefrog.MapMethod{Method: 1, Signature: "other"},
		bytefrog.MapException{Exception: 1, Name: "e"},
		bytefrog.MapThreadName{Thread: 1, Time: 1<<32 - 91, Name: "last"},
		bytefrog.MapMethod{Method: 2, Signature: "b"},
	}, remembered(n, translation{ticks: 100, needed: true}))
}

func TestTheOldestNamesAreEvicted(t *testing.T) {
	const each, room = nameBytes + 8, 10
	forgotten := 0
	n := newNames(room*each, func() uint64 { return 0 }, func() { forgotten++ })
	for i := range uint32(1000) {
		n.remember(bytefrog.MapMethod{Method: i, Signature: "m"}.AppendTo(nil))
		assert.LessOrEqual(t, n.size(), room*each)
	}
	var left []uint32
	for _, m := range remembered(n, translation{}) {
		left = append(left, m.(bytefrog.MapMethod).Method)
	}
	assert.Equal(t, []uint32{990, 991, 992, 993, 994, 995, 996, 997, 998, 999}, left)
	assert.Equal(t, 990, forgotten)
	assert.LessOrEqual(t, cap(n.order), 64)
}

func TestWithoutMemoryNoNameIsRemembered(t *testing.T) {
	n := newNames(0, func() uint64 { return 0 }, func() {})
	n.remember(bytefrog.MapMethod{Method: 1, Signature: "a"}.AppendTo(nil))
	assert.Empty(t, remembered(n, translation{}))
	assert.Zero(t, n.size())
}

func TestAThreadIsNamedAfterItsClockHasWrapped(t *testing.T) {
	now := uint64(5)
	n := newNames(mib, func() uint64 { return now }, func() {})
	n.remember(bytefrog.MapThreadName{Thread: 1, Time: 5, Name: "old"}.AppendTo(nil))
	now = 1<<32 + 3
	n.remember(bytefrog.MapThreadName{Thread: 1, Time: 3, Name: "new"}.AppendTo(nil))
	assert.Equal(t, []bytefrog.Message{bytefrog.MapThreadName{Thread: 1, Time: 3, Name: "new"}}, remembered(n, translation{}))
}

// Times wrap around. A time of half that period ago would be in the future.
func TestAThreadThatWasNamedLongAgoWasNamedBeforeTheRun(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	now := uint64(5)
	n := newNames(mib, func() uint64 { return now }, func() {})
	n.remember(bytefrog.MapThreadName{Thread: 1, Time: 5, Name: "main"}.AppendTo(nil))
	now = 25 * day
	n.remember(bytefrog.MapThreadName{Thread: 2, Time: 25*day - 7, Name: "worker"}.AppendTo(nil))
	assert.Equal(t, []bytefrog.Message{
		bytefrog.MapThreadName{Thread: 1, Time: 1<<32 - day, Name: "main"},
		bytefrog.MapThreadName{Thread: 2, Time: 1<<32 - 7, Name: "worker"},
	}, remembered(n, translation{ticks: now, needed: true}))
}
