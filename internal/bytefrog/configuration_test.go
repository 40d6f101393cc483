// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var demoConfiguration = AgentConfiguration{
	RunID:              1,
	HeartbeatInterval:  500 * time.Millisecond,
	Exclusions:         []string{"^java/", "^sun/", "^org/objectweb/", "^jdk/"},
	Inclusions:         []string{"^demo/"},
	BufferMemoryBudget: 1 << 20,
	QueueRetryCount:    10,
	DataConnections:    2,
}

var mavenConfiguration = AgentConfiguration{
	RunID:              9,
	HeartbeatInterval:  250 * time.Millisecond,
	Exclusions:         []string{""},
	Inclusions:         []string{"^org/apache/maven", "^org/codehaus/plexus"},
	BufferMemoryBudget: 4 << 20,
	QueueRetryCount:    10,
	DataConnections:    3,
}

// equalConfigurations compares configurations. Nil and empty lists are equal.
func equalConfigurations(a, b AgentConfiguration) bool {
	return a.RunID == b.RunID && a.HeartbeatInterval == b.HeartbeatInterval &&
		slices.Equal(a.Exclusions, b.Exclusions) && slices.Equal(a.Inclusions, b.Inclusions) &&
		a.BufferMemoryBudget == b.BufferMemoryBudget && a.QueueRetryCount == b.QueueRetryCount &&
		a.DataConnections == b.DataConnections
}

func TestConfigurationsEqualTheJVMsBytes(t *testing.T) {
	for name, c := range map[string]AgentConfiguration{
		"shop": demoConfiguration, "suspend": demoConfiguration, "startsuspended": demoConfiguration, "maven": mavenConfiguration,
	} {
		t.Run(name, func(t *testing.T) {
			want := Configuration{Data: openCapture(t, name).Configuration}
			got, err := c.Message(1)
			require.NoError(t, err)
			assert.Equal(t, want, got)

			read, err := ParseAgentConfiguration(want)
			require.NoError(t, err)
			assert.Equal(t, c, read)
		})
	}
}

func TestConfigurationAsJSON(t *testing.T) {
	c := mavenConfiguration
	c.RunID = 200
	c.Inclusions = []string{`^démo/[<>&]"😀`}
	m, err := c.Message(2)
	require.NoError(t, err)
	assert.Equal(t, ConfigurationV2{JSON: `{"runId":200,"heartbeatInterval":250,"exclusions":[""],` +
		`"inclusions":["^démo/[<>&]\"😀"],"bufferMemoryBudget":4194304,"queueRetryCount":10,"numDataSenders":3}`}, m)
	got, err := ParseAgentConfiguration(m)
	require.NoError(t, err)
	assert.Equal(t, c, got)

	empty, err := AgentConfiguration{}.Message(2)
	require.NoError(t, err)
	assert.Equal(t, ConfigurationV2{JSON: `{"runId":0,"heartbeatInterval":0,"exclusions":[],"inclusions":[],` +
		`"bufferMemoryBudget":0,"queueRetryCount":0,"numDataSenders":0}`}, empty)
}

func TestConfigurationInOtherFormsOfJSON(t *testing.T) {
	got, err := ParseAgentConfiguration(ConfigurationV2{JSON: `{"RunId":-56,"HeartbeatInterval":1000,"Exclusions":["a"],` +
		`"Inclusions":null,"BufferMemoryBudget":25600,"NumDataSenders":1,"More":true}`})
	require.NoError(t, err)
	assert.Equal(t, AgentConfiguration{
		RunID: 200, HeartbeatInterval: time.Second, Exclusions: []string{"a"}, BufferMemoryBudget: 25600, DataConnections: 1,
	}, got)
}

func TestConfigurationsAreReadBackInBothVersions(t *testing.T) {
	cases := map[string]AgentConfiguration{
		"nothing": {},
		"the largest numbers": {
			RunID: 255, HeartbeatInterval: math.MaxInt32 * time.Millisecond,
			BufferMemoryBudget: math.MaxInt32, QueueRetryCount: math.MaxInt32, DataConnections: math.MaxInt32,
		},
		"the smallest numbers": {
			HeartbeatInterval:  math.MinInt32 * time.Millisecond,
			BufferMemoryBudget: math.MinInt32, QueueRetryCount: math.MinInt32, DataConnections: math.MinInt32,
		},
		"expressions of any characters": {
			Exclusions: []string{"", "\x00", "é", "\uFFFD", "😀", "\U0010FFFF", `"quoted"`, `back\slash`, "a\nb", "\u2028"},
			Inclusions: []string{"", "😀"},
		},
		"expressions that repeat names of the stream": {
			Exclusions: []string{"same", "same", "Ljava/util/List;", "java.util.ArrayList", "size"},
			Inclusions: []string{"same", "Ljava/util/List;"},
		},
	}
	for name, c := range cases {
		for version := uint8(MinVersion); version <= MaxVersion; version++ {
			t.Run(name, func(t *testing.T) {
				m, err := c.Message(version)
				require.NoError(t, err)
				// The string of version 2 is encoded in modified UTF-8.
				sent := m.AppendTo(nil)
				received, n, err := DecodeCommand(sent, version, 1<<20)
				require.NoError(t, err)
				require.Equal(t, len(sent), n)
				got, err := ParseAgentConfiguration(received)
				require.NoError(t, err)
				assert.True(t, equalConfigurations(c, got), "expected %+v, got %+v", c, got)
			})
		}
	}
}

func TestInvalidConfigurationsHaveNoMessage(t *testing.T) {
	cases := []struct {
		name    string
		c       AgentConfiguration
		version uint8
		text    string
	}{
		{"version 0", AgentConfiguration{}, 0, "expected protocol version 1 or 2, got 0"},
		{"version 3", AgentConfiguration{}, 3, "expected protocol version 1 or 2, got 3"},
		{
			"a heartbeat interval with a fraction of a millisecond", AgentConfiguration{HeartbeatInterval: 1500 * time.Microsecond}, 1,
			"heartbeat interval: expected whole milliseconds of 32 bits, got 1.5ms",
		},
		{
			"a heartbeat interval of a month", AgentConfiguration{HeartbeatInterval: 720 * time.Hour}, 2,
			"heartbeat interval: expected whole milliseconds of 32 bits, got 720h0m0s",
		},
		{"an exclusion that is not UTF-8", AgentConfiguration{Exclusions: []string{"\xFF"}}, 1, `exclusions: expected UTF-8, got "\xff"`},
		{"an inclusion that is not UTF-8", AgentConfiguration{Inclusions: []string{"\xFF"}}, 2, `inclusions: expected UTF-8, got "\xff"`},
		{
			"more JSON than a string holds", AgentConfiguration{Inclusions: []string{strings.Repeat("x", MaxString)}}, 2,
			"expected a configuration of at most 65535 bytes of JSON, got 65664",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := c.c.Message(c.version)
			assert.EqualError(t, err, c.text)
			assert.Nil(t, m)
		})
	}
}

func TestInvalidConfigurationsAreErrors(t *testing.T) {
	m, err := demoConfiguration.Message(1)
	require.NoError(t, err)
	data := string(m.(Configuration).Data)
	cases := []struct {
		name string
		m    Message
		text string
	}{
		{"another message", Heartbeat{}, "expected a configuration, got bytefrog.Heartbeat"},
		{"no bytes", Configuration{}, "serialised configuration: byte 0: expected stream magic (2 bytes), got the end of the stream after 0"},
		{
			"another class", Configuration{Data: []byte(strings.Replace(data, "ConfigurationV1", "ConfigurationV9", 1))},
			"serialised configuration: expected class com.secdec.bytefrog.common.config.RuntimeAgentConfigurationV1 with serialVersionUID -4660117618158655806, " +
				"got com.secdec.bytefrog.common.config.RuntimeAgentConfigurationV9 with -4660117618158655806",
		},
		{
			"another field", Configuration{Data: []byte(strings.Replace(data, "runId", "runNo", 1))},
			"serialised configuration: expected a field runId, got none",
		},
		{
			"a field of another type", Configuration{Data: []byte(strings.Replace(data, "I\x00\x0EnumDataSenders", "F\x00\x0EnumDataSenders", 1))},
			"serialised configuration: field numDataSenders: expected javaser.Int, got javaser.Float",
		},
		{"no JSON", ConfigurationV2{JSON: "{"}, "configuration as JSON: unexpected end of JSON input"},
		{"a run ID of two bytes", ConfigurationV2{JSON: `{"runId":256}`}, "configuration as JSON: expected a runId of one byte, got 256"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseAgentConfiguration(c.m)
			assert.EqualError(t, err, c.text)
		})
	}
}
