// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys"
)

func TestHeartbeatsAreAnsweredWithAnything(t *testing.T) {
	c, p, _ := serving(t, Config{Heartbeat: time.Millisecond, MaxUnanswered: 1000})
	for _, answer := range []struct {
		code ReturnCode
		data string
	}{{Done, ""}, {Done, "{}"}, {TypeUnsupported, ""}, {Failed, "{"}} {
		r := p.request(Heartbeat)
		assert.Equal(t, "{}", string(r.Data))
		p.answer(r.SendID, answer.code, answer.data)
	}
	stats := c.Stats()
	assert.Zero(t, stats.Unasked)
	assert.Zero(t, stats.Dropped)
}

func TestHeartbeatsWithoutAnswersEndTheConnection(t *testing.T) {
	c, p, served := serving(t, Config{Heartbeat: time.Millisecond, MaxUnanswered: 3})
	watching := run(t.Context(), t, c, greys.ClassesCommand{Class: pattern(t, "a")})
	heartbeats := 0
	for {
		r, err := p.requests.Next()
		if err != nil {
			break
		}
		if r.Type == Heartbeat {
			heartbeats++
		}
	}
	assert.Equal(t, 3, heartbeats)
	require.ErrorIs(t, served(), ErrSilent)
	require.ErrorIs(t, watching.end(), ErrSilent)
	require.ErrorContains(t, served(), "GP server pipe: the server answers no heartbeats: 3 in a row, one every 1ms")
	assert.Equal(t, uint64(3), c.Stats().Unanswered)
}

func TestAReplyThatNeverEndsAnswersNoHeartbeat(t *testing.T) {
	_, p, served := serving(t, Config{Heartbeat: time.Millisecond})
	go func() {
		for { // heartbeats are taken
			if _, err := p.requests.Next(); err != nil {
				return
			}
		}
	}()
	_, err := p.Write([]byte("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\xff\xff\xff"))
	for err == nil {
		_, err = p.Write([]byte(" "))
	}
	require.ErrorIs(t, served(), ErrSilent)
}

func TestAnAnswerToOneHeartbeatIsOneToThoseBefore(t *testing.T) {
	c, p := connected(t, Config{})
	c.beats = []int32{5, 6, 7}
	require.NoError(t, c.pass(Answer{SendID: 6}))
	assert.Equal(t, []int32{7}, c.beats)
	require.NoError(t, c.pass(Answer{SendID: 5}))
	assert.Equal(t, uint64(1), c.Stats().Unasked)
	_ = p
}
