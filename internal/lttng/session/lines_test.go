// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

func TestFrequentEventsOfARelayDaemonAreLoggedRarely(t *testing.T) {
	env := newEnvironment(t, nil)
	core, logged := observer.New(zapcore.DebugLevel)
	env.Logger = zap.New(core)
	now := time.Unix(1, 0)
	env.Now = func() time.Time { return now }
	s := New(env, lttnglive.Session{})
	for line, say := range map[string]func(){
		"A stream cannot be read further":                                                 func() { s.lines.warnUnreadable("s", errClosed) },
		"A packet is skipped":                                                             func() { s.lines.warnLeftOut("s", 0, 0) },
		"A stream sends nothing: other streams no longer wait for it":                     func() { s.lines.warnOvertaken("s", time.Second) },
		"The session was cleared, or its files were overwritten: unread packets are lost": func() { s.lines.logCleared("t", "s", 1) },
		"The session is dropped for now: its data cannot be read":                         func() { s.logFailure(&badData{BadPacket, errClosed}, 0) },
	} {
		for range 9 {
			say()
		}
		now = now.Add(logline.Pause)
		say()
		said := logged.FilterMessage(line).All()
		if assert.Len(t, said, 2, line) {
			assert.EqualValues(t, 1, said[0].ContextMap()["times_since_last_line"], line)
			assert.EqualValues(t, 9, said[1].ContextMap()["times_since_last_line"], line)
		}
	}
}
