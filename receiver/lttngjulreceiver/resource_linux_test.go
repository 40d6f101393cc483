// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func TestAnAgentWithAnUnknownProcessIsNamedByItsLanguage(t *testing.T) {
	b := newBed(t, nil)
	a := b.connect()
	a.send(lttngagent.NewRegistration(lttngagent.Python, 1).AppendTo(nil))
	a.expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	r := b.awaitRecords(eventRegistered, 1)[0]
	assert.Equal(t, "unknown_service:python", r.resource[attributeServiceName])
	assert.EqualValues(t, 1, r.resource[attributeProcessID])
	assert.NotContains(t, r.resource, attributeExecutableName)
	assert.NotContains(t, r.resource, attributeCommandArgs)
}

func TestTheCommandLineIsSentIfItIsEnabled(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ProcessCommandArgs = true })
	b.register(lttngagent.JUL).expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	r := b.awaitRecords(eventRegistered, 1)[0]
	require.Contains(t, r.resource, attributeCommandArgs)
	assert.Equal(t, os.Args[0], r.resource[attributeCommandArgs].([]any)[0])
}

func TestTheConfigurationOverridesTheResource(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.ServiceName, c.ProcessCommandArgs = "shop", true
		c.ResourceAttributes = map[string]any{"process.pid": 7, "host.name": "elsewhere", "process.command_args": "hidden", "team": "a"}
	})
	b.register(lttngagent.JUL).expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	r := b.awaitRecords(eventRegistered, 1)[0]
	assert.Equal(t, "shop", r.resource[attributeServiceName])
	assert.EqualValues(t, 7, r.resource[attributeProcessID])
	assert.Equal(t, "elsewhere", r.resource[attributeHostName])
	assert.Equal(t, "hidden", r.resource[attributeCommandArgs])
	assert.Equal(t, "a", r.resource["team"])
}
