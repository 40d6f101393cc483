// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// config/lttng.yaml as shipped. pages_test.go runs it with LTTng's own daemons and programs, by the commands of
// docs/lttng.md.

// shippedForLTTng returns config/lttng.yaml with other addresses and another port file. Nothing else is changed.
func shippedForLTTng(t *testing.T, relay, spans, metrics, portFile string) string {
	t.Helper()
	return shipped(t, "lttng.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:5344": relay,
		"endpoint: localhost:4317": spans, "endpoint: localhost:8889": metrics,
		"endpoint: localhost:5360": "localhost:0", "port_files: [/var/run/lttng/agent.port]": "[" + portFile + "]",
	})
}

// The rules of config/lttng.yaml apply to a program that finds the collector by the configured port file. The test
// needs no LTTng daemons.
func TestTheConfigurationForLTTngSwitchesLoggers(t *testing.T) {
	t.Parallel()
	portFile := filepath.Join(t.TempDir(), "agent.port")
	data := t.TempDir()
	c := kit.Start(t, shippedForLTTng(t, testkit.Address(t), testkit.Address(t), testkit.Address(t), portFile), "CALLBRAID_DATA="+data)
	agent := logagent.New(logagent.Options{PortFile: portFile, PID: unusedPID, Loggers: []string{"com.example.shop"}})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, agent.Run(ctx)) })
	defer running.Wait()
	defer end()
	logs := filepath.Join(data, "lttng", "logs.json")
	said := func() (events []string) {
		if _, err := os.Stat(logs); err != nil {
			return nil // no record was written yet
		}
		eachLogIn(t, logs, func(_ pcommon.Resource, _ pcommon.InstrumentationScope, r plog.LogRecord) {
			events = append(events, r.Body().Str())
		})
		return events
	}
	registered := []string{"Agent registered", "Logger com.example.shop appeared"}
	testkit.Eventually(t, "the program's logger", func() (bool, string) {
		events := said()
		return len(events) >= len(registered), fmt.Sprint(events)
	})
	assert.Equal(t, registered, said())
	assert.Equal(t, map[string]int{"com.example.*": 1}, agent.Enabled())
	c.Stop(t)
	assert.Empty(t, agent.Enabled())
	assert.NotContains(t, c.Log(), "This receiver doesn't own a port file")
}
