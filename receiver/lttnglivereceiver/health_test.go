// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

func healthBed(t *testing.T, address string) (*bed, *telemetrytest.Statuses) {
	t.Helper()
	b, host := unstartedBed(t, reading(address)), telemetrytest.NewStatuses()
	b.host = host
	require.NoError(t, b.component().Start(context.Background(), host))
	t.Cleanup(b.shutdown)
	return b, host
}

func TestTheHealthOfTheRelayDaemonIsReported(t *testing.T) {
	first := newRelay(t, captured(t, "cyg1"), lttnglive.RelayOptions{})
	address := first.address()
	b, host := healthBed(t, address)
	up := func() int64 {
		if value, has := telemetrytest.Gauge(t, b.telemetry, "otelcol_receiver_lttng_live_server_up")["{server="+address+"}"]; has {
			return value
		}
		return -1
	}
	b.await("the relay daemon", func() bool { return up() == 1 })
	assert.Empty(t, host.All(), "it is as it has to be")
	first.stop()
	b.await("its loss", func() bool { return up() == 0 && len(host.All()) > 0 })
	assert.Contains(t, host.Last(), "StatusRecoverableError: 1 of ")
	assert.Contains(t, host.Last(), " failed: "+address+": ")
	newRelayAt(t, address, captured(t, "cyg1"), lttnglive.RelayOptions{})
	b.await("it to be back", func() bool { return up() == 1 && host.Last() == "StatusOK" })
	b.shutdown()
	assert.Equal(t, "StatusOK", host.Last(), "a shutdown is no failure")
	assert.EqualValues(t, -1, up(), "no point")
}

func TestASessionThatCannotBeReadIsARecoverableError(t *testing.T) {
	recordings := captured(t, "cyg1")
	spoil(t, recordings[0], 0, 5, 0)
	r := newRelay(t, recordings, lttnglive.RelayOptions{Restart: true})
	b, host := healthBed(t, r.address())
	b.await("it", func() bool { return len(host.All()) > 0 })
	assert.Contains(t, host.All()[0], "failed: session vm/cyg1: ")
	assert.Contains(t, host.All()[0], "expected magic 0xc1fc1fc1")
	b.await("it to be read on", func() bool { return host.Last() == "StatusOK" })
}
