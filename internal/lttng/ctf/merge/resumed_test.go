// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

func TestAResumedPositionIsValidUntilItsPacketArrives(t *testing.T) {
	at := Position{Known: true, Next: 4, Events: 40, After: true, Discarded: 3, End: 17}
	s := New(ctf.NewTrace(), Options{}).AddStream(1, "resumed")
	s.Resume(at)
	assert.Equal(t, at, s.Position())
}
