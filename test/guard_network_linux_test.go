// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/guard"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// A disconnected network gives no error: sent data is not acknowledged. If it is connected again in
// time, only data of the meantime is lost.
func TestBehindAGuardTheNetworkCanBeCutForAWhile(t *testing.T) {
	t.Parallel()
	p := &tidal{pause: briefPause}
	s := newTides(t, p)
	endpoint := testkit.Address(t)
	far := kit.NewFar(t, endpoint)
	c := kit.Start(t, pipeline(endpoint, "", "reorder: {max_wait: 1m}, idle_timeout: 10m", toBackend(s.endpoint)))
	// The time until it is connected again does not depend on the speed of the machine.
	g, address := startGuard(t, far.Address, littleMemory, func(o *guard.Options) { o.Silence = testkit.Patience })
	a, results := startTidal(t, address, p)
	testkit.Eventually(t, "spans", func() (bool, string) { return s.whole() == 1, "" })
	p.waited()
	far.Cut(t)
	testkit.Eventually(t, "the agent is suspended", func() (bool, string) { return g.State().Stalled == 1, fmt.Sprintf("%+v", g.State()) })
	t.Logf("waits for a buffer: %v at most until the agent was suspended", p.waited())
	far.Heal(t)
	testkit.Eventually(t, "the agent goes on", func() (bool, string) { return g.State().Stalled == 0, fmt.Sprintf("%+v", g.State()) })
	result := stop(t, g, a, results)
	c.AwaitMetric(t, 1, runsEnded)
	c.Stop(t)
	s.check(g, result)
	assert.EqualValues(t, 1, g.Counts().Runs.Load())
	assert.Zero(t, g.Counts().Losses.Load())
	assert.EqualValues(t, p.next, g.Counts().Passed.Load(), "every event was passed on")
	assert.Equal(t, p.wholeCalls(), s.only(), "whole calls")
}

// A network that stays disconnected is the loss of a collector, and the trace continues at another.
func TestBehindAGuardTheTraceContinuesAtAnotherCollectorWhenTheNetworkIsCut(t *testing.T) {
	t.Parallel()
	p := &tidal{pause: briefPause}
	s := newTides(t, p)
	endpoint, elsewhere := testkit.Address(t), testkit.Address(t)
	far := kit.NewFar(t, endpoint)
	c := kit.Start(t, pipeline(endpoint, "", "", toBackend(s.endpoint)))
	other := kit.Start(t, pipeline(elsewhere, "", "", toBackend(s.endpoint)))
	g, address := startGuard(t, far.Address, littleMemory, func(o *guard.Options) {
		o.Collectors = append(o.Collectors, elsewhere)
		o.Silence = 3 * time.Second
	})
	a, results := startTidal(t, address, p)
	testkit.Eventually(t, "spans", func() (bool, string) { return s.whole() == 1, "" })
	p.waited()
	far.Cut(t)
	testkit.Eventually(t, "spans elsewhere", func() (bool, string) { return s.whole() == 2, fmt.Sprintf("%+v", g.State()) })
	t.Logf("waits for a buffer: %v at most since the network was cut", p.waited())
	result := stop(t, g, a, results)
	other.AwaitMetric(t, 1, runsEnded)
	require.EqualValues(t, 1, g.Counts().Losses.Load())
	assert.EqualValues(t, 2, g.Counts().Runs.Load())
	other.Stop(t)
	c.Stop(t)
	s.check(g, result)
}
