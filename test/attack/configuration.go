// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/testkit"
)

// places are the addresses that replace those of a shipped configuration, by its port.
type places struct {
	t  testing.TB
	of map[int]string
}

// at returns the address that replaces localhost:port.
func (p places) at(port int) string {
	if p.of[port] == "" {
		p.of[port] = testkit.Address(p.t)
	}
	return p.of[port]
}

// Ports of the shipped configurations.
const (
	bytefrogPort   = 8765
	controlPort    = 8766
	flamesPort     = 4040
	prometheusPort = 8889
	relayPort      = 5344
	lttngJULPort   = 5360
	otlpPort       = 4320
	otlpHTTPPort   = 4318
	jaegerPort     = 4317
	rbkitPort      = 5555
	greysPort      = 3658
	arthasPort     = 8563
	healthPort     = 13133
)

// onLocalhost matches the addresses of shipped configurations.
var onLocalhost = regexp.MustCompile(`localhost:(\d+)`)

// shipped returns a shipped configuration with other ports. Settings, which are YAML with addresses
// as in shipped configurations, change it: maps are merged, other values replaced.
func shipped(t testing.TB, name string, settings ...string) (string, places) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", name))
	require.NoError(t, err)
	var configuration map[string]any
	require.NoError(t, yaml.Unmarshal(text, &configuration))
	for _, of := range settings {
		var extra map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(of), &extra))
		merge(configuration, extra)
	}
	// The testbed reads the collector's own metrics and log at its own address.
	service := configuration["service"].(map[string]any)
	delete(service, "telemetry")
	merge(configuration, map[string]any{"extensions": map[string]any{"health_check": map[string]any{"endpoint": "${env:HEALTH}"}}})
	if receivers, ok := configuration["receivers"].(map[string]any); ok && receivers["lttng_jul"] != nil {
		merge(receivers, map[string]any{"lttng_jul": map[string]any{"port_files": []any{"${env:DIR}/agent.port"}}})
	}
	moved, err := yaml.Marshal(configuration)
	require.NoError(t, err)
	p := places{t, map[int]string{}}
	return onLocalhost.ReplaceAllStringFunc(string(moved), func(address string) string {
		port, err := strconv.Atoi(onLocalhost.FindStringSubmatch(address)[1])
		require.NoError(t, err, address)
		return p.at(port)
	}), p
}

// merge puts settings into a map.
func merge(into, settings map[string]any) {
	for key, value := range settings {
		old, isMap := into[key].(map[string]any)
		if more, ok := value.(map[string]any); ok && isMap {
			merge(old, more)
			continue
		}
		into[key] = value
	}
}
