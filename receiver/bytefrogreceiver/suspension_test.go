// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const suspendPatience = 5 * time.Second

func TestSuspendIsSentOnceAndAnsweredOnce(t *testing.T) {
	now := time.Now()
	var s suspension
	answered, first := s.ask(now)
	assert.True(t, first)
	again, first := s.ask(now.Add(time.Second))
	assert.False(t, first)
	assert.Equal(t, answered, again)
	assert.False(t, isClosed(answered))
	s.answer(12)
	s.answer(13)
	assert.True(t, isClosed(answered))
	at, ok := s.brokenAt()
	assert.True(t, ok)
	assert.EqualValues(t, 12, at)
}

func TestADataBreakThatNobodyAskedForIsNoAnswer(t *testing.T) {
	var s suspension
	s.answer(5)
	_, ok := s.brokenAt()
	assert.False(t, ok)
	released, _ := s.release(time.Now(), 0)
	assert.False(t, released, "it was not suspended")
}

func TestAnAgentIsReleasedWhenItHasAnsweredOrNotForLong(t *testing.T) {
	now := time.Now()
	var s suspension
	s.ask(now)
	released, _ := s.release(now.Add(suspendPatience-1), suspendPatience)
	assert.False(t, released)
	released, answered := s.release(now.Add(suspendPatience), suspendPatience)
	assert.True(t, released)
	assert.False(t, answered)

	s.ask(now)
	s.answer(7)
	released, answered = s.release(now, suspendPatience)
	assert.True(t, released)
	assert.True(t, answered)
	_, ok := s.brokenAt()
	assert.False(t, ok)
}
