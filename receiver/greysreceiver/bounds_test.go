// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
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

func TestALastingFailureIsLoggedAgain(t *testing.T) {
	f, begin := failures{repeatAfter: usualRepeatAfter}, time.Now()
	refused := errors.New("dial tcp 127.0.0.1:3658: refused")
	for _, tt := range []struct {
		name  string
		after time.Duration
		why   error
		since int
		say   bool
	}{
		{"the first one", 0, refused, 1, true},
		{"the same a second later", time.Second, refused, 0, false},
		{"the same with another port", 2 * time.Second, errors.New("dial tcp 127.0.0.1:3659: refused"), 0, false},
		{"another reason", 3 * time.Second, errors.New("time ran out"), 3, true},
		{"the other reason lasts", 10 * time.Minute, errors.New("time ran out"), 0, false},
		{"for ten minutes", 10*time.Minute + 3*time.Second, errors.New("time ran out"), 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			since, say := f.say(tt.why, begin.Add(tt.after))
			assert.Equal(t, tt.say, say)
			assert.Equal(t, tt.since, since)
		})
	}
}
