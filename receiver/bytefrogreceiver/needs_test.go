// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// unmetNeeds is what stack_pairing logs of a receiver's settings.
func unmetNeeds(t *testing.T, receiver func(*Config), pairing func(*stackpairingprocessor.Config)) (lines []string) {
	factory := stackpairingprocessor.NewFactory()
	config := factory.CreateDefaultConfig().(*stackpairingprocessor.Config)
	pairing(config)
	core, logged := observer.New(zap.WarnLevel)
	settings := processortest.NewNopSettings(factory.Type())
	settings.Logger = zap.New(core)
	p, err := factory.CreateTraces(context.Background(), settings, config, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	b := unstartedBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { receiver(c) })
	b.Next.Traces = p
	b.Start()
	a := connect(b, 1)
	a.join().write(append(namesOne(), calls(0, 1)...))
	a.finish()
	b.awaitRuns(0)
	require.NoError(t, p.Shutdown(context.Background()))
	for _, line := range logged.All() {
		fields := line.ContextMap()
		lines = append(lines, fields["setting"].(string)+" for "+fields["receiver"].(string))
	}
	return lines
}

func TestStackPairingNamesSettingsThatDoNotFitTheReceiver(t *testing.T) {
	none := func(*stackpairingprocessor.Config) {}
	for name, c := range map[string]struct {
		receiver func(*Config)
		pairing  func(*stackpairingprocessor.Config)
		want     []string
	}{
		"defaults fit each other": {func(*Config) {}, none, nil},
		"names":                   {func(c *Config) { c.NameWait = 4 * time.Second }, func(c *stackpairingprocessor.Config) { c.Reorder.MaxWait = 4 * time.Second }, []string{"reorder.max_wait for name_wait: 4s"}},
		"pauses":                  {func(c *Config) { c.Retry.MaxInterval = 2600 * time.Millisecond }, none, []string{"reorder.max_wait for retry.max_interval: 2.6s"}},
		"pauses of half of it":    {func(c *Config) { c.Retry.MaxInterval = 2500 * time.Millisecond }, none, nil},
		"lead":                    {func(c *Config) { c.Limits.MaxConnectionLead = 1_000_000 }, none, []string{"reorder.max_events for limits.max_connection_lead: 1000000"}},
		"buffers":                 {func(c *Config) { c.Agent.BufferMemory = 16_000_000 }, none, []string{"reorder.max_events for agent.buffer_memory: 16000000"}},
		"signs of life":           {func(c *Config) { c.KeepaliveInterval = time.Minute }, none, []string{"idle_timeout for keepalive_interval: 1m0s"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, unmetNeeds(t, c.receiver, c.pairing)) })
	}
}
