// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestARunWhoseAgentGotNoCommandAcceptsNoDataConnection(t *testing.T) {
	p := newPair(t)
	assert.False(t, p.run.data.refuseUnlessJoined(), "two have joined")
	none := newDataConnections(2)
	assert.True(t, none.refuseUnlessJoined())
	assert.ErrorIs(t, none.attach(p.ahead.in), ErrRunOver)
}
