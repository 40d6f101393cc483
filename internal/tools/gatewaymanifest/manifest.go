// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// contrib is where the gateway's own components are, and its exporters begin so in the
// distribution's manifest, too.
const contrib = "  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/"

// added are the exporters that only the gateway has. They require the clients of Kafka,
// Kubernetes and AWS.
var added = []string{"kafkaexporter", "loadbalancingexporter"}

// renamed are the lines that differ. The distribution's manifest has each of them once.
var renamed = [][2]string{
	{
		"# The manifest of the distribution, for the OpenTelemetry Collector Builder.\n# `make build` is",
		"# The manifest of the distribution for several collectors, with the exporters that route between them.\n" +
			"# Made by `make generate` from builder-config.yaml: change that.\n# `make gateway` is",
	},
	{"  module: github.com/callbraid/callbraid/build\n", "  module: github.com/callbraid/callbraid/build-gateway\n"},
	{"  name: otelcol-callbraid\n", "  name: otelcol-callbraid-gateway\n"},
	{"  output_path: ./build\n", "  output_path: ./build-gateway\n"},
}

// gateway is the manifest of the gateway's distribution, by that of the ordinary one: its
// components, at its versions, and the added ones.
func gateway(distribution string) (string, error) {
	manifest := distribution
	for _, line := range renamed {
		if n := strings.Count(manifest, line[0]); n != 1 {
			return "", fmt.Errorf("expected %q once, got it %d times", line[0], n)
		}
		manifest = strings.Replace(manifest, line[0], line[1], 1)
	}
	last := strings.LastIndex(manifest, contrib)
	if last < 0 {
		return "", fmt.Errorf("expected an exporter that begins with %q, got none", contrib)
	}
	line, after, _ := strings.Cut(manifest[last:], "\n")
	_, version, ok := strings.Cut(strings.TrimPrefix(line, contrib), " ")
	if !ok {
		return "", fmt.Errorf("expected a module and its version, got %q", line)
	}
	var b strings.Builder
	b.WriteString(manifest[:last] + line + "\n")
	for _, exporter := range added {
		b.WriteString(contrib + exporter + " " + version + "\n")
	}
	b.WriteString(after)
	return b.String(), nil
}
