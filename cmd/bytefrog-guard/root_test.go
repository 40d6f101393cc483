// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrogguard"
)

func TestFlagsThatAreWrongAreNamed(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                                           "collector is not set",
		"--collector x":                              `collector is "x"`,
		"--collector a:1 --listen x":                 `listen is "x"`,
		"--collector a:1 --metrics x":                `metrics is "x"`,
		"--collector a:1 --memory 5":                 "memory is 5",
		"--collector a:1 --shutdown-timeout 0s":      "shutdown-timeout is 0s",
		"--collector a:1 --tls-ca x":                 "expected --tls too",
		"--collector a:1 --tls --tls-ca /no/such/ca": "/no/such/ca",
		"--collector a:1 --tls --tls-cert x":         "tls-key",
		"--collector a:1 --listen 192.0.2.1:1":       "--listen",
		"more":                                       "unknown command",
	} {
		command := rootCommand()
		command.SetArgs(strings.Fields(arguments))
		assert.ErrorContains(t, command.ExecuteContext(t.Context()), want, arguments)
	}
}

func TestAllMetricsAreServed(t *testing.T) {
	o := bytefrogguard.DefaultOptions()
	o.Collectors = []string{"localhost:1"}
	guard, err := bytefrogguard.New(o)
	require.NoError(t, err)
	guard.Counts().Passed.Add(7)
	recorder := httptest.NewRecorder()
	metricsHandler(guard).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	text := recorder.Body.String()
	assert.Contains(t, text, "\nbytefrog_guard_events_passed_total 7\n")
	for _, m := range all() {
		assert.Contains(t, text, "\nbytefrog_guard_"+m.name+" ")
		assert.NotEmpty(t, m.help)
	}
}
