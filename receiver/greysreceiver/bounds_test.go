// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
)

func TestExceededLimitsAreLogged(t *testing.T) {
	server := play(t, greysserver.Options{Protocol: greysserver.Console, Program: greysserver.ProgramOptions{Classes: 5, Methods: 4, Rate: 400}})
	b := following(t, func(c *Config) {
		c.Protocol = ProtocolConsole
		c.Limits.MaxMethods, c.Limits.MaxInventory, c.Limits.MaxTreeNodes = 3, 4, 1
		c.Monitors = []MonitorConfig{{TargetConfig: TargetConfig{Class: "com.example.*", Method: "*"}, Cycle: time.Second}}
		c.Traces = []CallsConfig{{TargetConfig: TargetConfig{Class: "com.example.*", Method: "*"}}}
		c.Classes = []ClassesConfig{{Class: "com.example.*", Limit: 2}}
		c.Methods = []MethodsConfig{{TargetConfig: TargetConfig{Class: "com.example.*", Method: "*"}}}
	}, server).start()
	assert.Equal(t, "limits.max_methods: 3 methods for this server", b.awaitLogged("counts the others together, as other").ContextMap()["setting"])
	assert.EqualValues(t, 4, b.awaitLogged("More classes and methods are listed than the receiver may remember").ContextMap()["limits.max_inventory"])
	assert.EqualValues(t, 1, b.awaitLogged("A call tree has more calls than its limit").ContextMap()["limits.max_tree_nodes"])
	assert.EqualValues(t, 2, b.awaitLogged("A list has more entries than its limit").ContextMap()["limit"])
}
