// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
)

func TestTheLogWarnsOnceOfAnEndpointThatOtherMachinesReach(t *testing.T) {
	assert.Zero(t, newBed(t, nil).Log.FilterMessage(openlistener.WithoutTLS).Len(), "on localhost")
	b := newBed(t, func(c *Config) { c.Endpoint = ":0" })
	warned := b.Log.FilterMessage(openlistener.WithoutTLS).All()
	require.Len(t, warned, 1)
	assert.Equal(t, b.address(), warned[0].ContextMap()["address"])
	assert.Equal(t, b.receiver.env.ID, warned[0].ContextMap()["component"])
}
