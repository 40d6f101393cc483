// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairingmark

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAMarkIsSetThroughTheContextThatCarriesIt(t *testing.T) {
	var m, other Mark
	ctx, cancel := context.WithCancel(With(t.Context(), &m))
	defer cancel()
	assert.False(t, m.IsSet())
	Set(ctx)
	assert.True(t, m.IsSet())
	assert.False(t, other.IsSet())
}

func TestAContextWithoutAMarkIsNoError(t *testing.T) {
	assert.NotPanics(t, func() { Set(t.Context()) })
}
