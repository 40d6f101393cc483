// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

func TestWhatARelayDaemonCanBringVeryOftenIsSaidSeldom(t *testing.T) {
	b := unstartedBed(t)
	now := time.Unix(1, 0)
	b.receiver.env.now = func() time.Time { return now }
	f, s := newFollower(b.receiver.env, lttnglive.Session{}), &stream{key: "s", trace: &trace{key: "t"}}
	for line, say := range map[string]func(){
		"A stream cannot be read further":                     func() { f.saidUnreadable(s, errClosed) },
		"A packet is left out":                                func() { f.saidLeftOut(s, packetTimes{}) },
		"A stream says nothing: others no longer wait for it": func() { f.saidOvertaken(s) },
		"The session was cleared, or its files were written round: packets are gone that had not been read": func() { f.saidCleared(s.trace, s, 1) },
		"Call events of a process cannot be packed":                                                         func() { f.cannotPack(errClosed) },
		"The session is dropped for now: what came could not be read":                                       func() { f.failed(&badData{badPacket, errClosed}, 0) },
	} {
		for range 9 {
			say()
		}
		now = now.Add(logline.Pause)
		say()
		said := b.said.FilterMessage(line).All()
		if assert.Len(t, said, 2, line) {
			assert.EqualValues(t, 1, said[0].ContextMap()["since_last"], line)
			assert.EqualValues(t, 9, said[1].ContextMap()["since_last"], line)
		}
	}
}

func TestAnObjectWithoutFileNamesTheSettingAndTheRemedy(t *testing.T) {
	b := unstartedBed(t)
	b.receiver.env.saidNoNames("/opt/shop", fmt.Errorf("%w below /", symbols.ErrNoFile))
	b.receiver.env.saidNoNames("/opt/other", errClosed)
	said := b.said.FilterMessageSnippet("Functions of an object have no names").All()
	require.Len(t, said, 2)
	assert.Contains(t, said[0].Message, "in none of symbol_paths. Add the directory")
	assert.Equal(t, "no file found below /", said[0].ContextMap()["error"])
	assert.NotContains(t, said[1].Message, "symbol_paths")
}
