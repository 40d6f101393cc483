// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALastingFailureIsLoggedAgain(t *testing.T) {
	f, begin := failures{repeatAfter: UsualRepeatAfter}, time.Now()
	refused := errors.New("dial tcp 127.0.0.1:3658: refused")
	for _, tt := range []struct {
		name  string
		after time.Duration
		why   error
		since int
		say   bool
	}{
		{"the first one", 0, refused, 1, true},
		{"the same a second later", time.Second, refused, 0, false},
		{"the same with another port", 2 * time.Second, errors.New("dial tcp 127.0.0.1:3659: refused"), 0, false},
		{"another reason", 3 * time.Second, errors.New("time ran out"), 3, true},
		{"the other reason lasts", 10 * time.Minute, errors.New("time ran out"), 0, false},
		{"for ten minutes", 10*time.Minute + 3*time.Second, errors.New("time ran out"), 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			since, say := f.say(tt.why, begin.Add(tt.after))
			assert.Equal(t, tt.say, say)
			assert.Equal(t, tt.since, since)
		})
	}
}

// The first shortage is signalled twice, and its memory is freed before the second signal is handled.
func TestAShortageSoonAfterAnotherIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Settings: Settings{Memory: servermemory.New(budget.New(1<<30).Group("greys"), mib)}, full: make(chan servermemory.Shortage, 1)}
		defer s.Memory.Close()
		require.Error(t, s.Memory.Hold(2*mib))
		s.full <- <-s.Memory.Over()
		s.Memory.Renew()
		watching, end := context.WithCancel(t.Context())
		defer end()
		go s.watchMemory(watching)
		require.Error(t, s.Memory.Hold(2*mib))
		synctest.Wait()
		assert.True(t, s.Memory.IsCurrent(<-s.full), "the newer shortage is handled")
	})
}

const mib = 1 << 20

// The pauses grow only for restarts that follow each other soon.
func TestALongLivedProcessIsFollowedByAShortPause(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s := New(Settings{
		Session: session.Settings{Reconnect: backoff.Config{InitialInterval: time.Second, MaxInterval: time.Hour}},
		Run:     &receiverkit.Run{Kit: &receiverkit.Kit{Now: func() time.Time { return now }}},
	})
	s.output = &Output{Origin: &signals.Origin{Begun: now}}
	for range 20 {
		s.restartPause()
	}
	assert.GreaterOrEqual(t, s.restartPause(), 30*time.Minute)
	s.output.Origin.Begun = now.Add(-time.Hour - 1)
	assert.Less(t, s.restartPause(), 2*time.Second)
}
