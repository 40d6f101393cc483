// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/pairingmark"
)

func TestReceiversSeeThatTheirBatchesReachTheProcessor(t *testing.T) {
	b := newBed(t)
	var mark pairingmark.Mark
	require.NoError(t, b.ConsumeTraces(pairingmark.With(t.Context(), &mark), traces(t, call(1, "f", 0))))
	assert.True(t, mark.IsSet())
	b.finish()
}
