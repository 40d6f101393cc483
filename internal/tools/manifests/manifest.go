// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// contrib is the prefix of the lines of components that are not the Collector's or our own.
const contrib = "  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/"

// added are the components that only the gateway has, by their section. They require the clients of Kafka, Kubernetes and
// AWS.
var added = []struct {
	section    string
	components []string
}{
	{"processors", []string{"processor/k8sattributesprocessor"}},
	{"exporters", []string{"exporter/kafkaexporter", "exporter/loadbalancingexporter"}},
}

// necessary are the components of the Collector and of contrib that the small distribution has: those of the shipped
// configurations for one collector, the exporter otlp_http, and an authenticator.
var necessary = []string{
	"otlpreceiver", "memorylimiterprocessor", "otlpexporter", "otlphttpexporter", "prometheusexporter", "bearertokenauthextension", "healthcheckextension",
	"zpagesextension", "filestorage",
}

// head is the beginning of the ordinary manifest, up to the name of its command.
const head = "# The manifest of the distribution, for the OpenTelemetry Collector Builder.\n# `make build` is"

// renamed are the lines that differ in the manifest of a variant. The ordinary manifest has each of them once.
func renamed(variant, purpose string) [][2]string {
	return [][2]string{
		{head, "# The manifest of the distribution " + purpose + ".\n# Made by `make generate` from builder-config.yaml: change that.\n# `make " + variant + "` is"},
		{"  module: github.com/callbraid/callbraid/build\n", "  module: github.com/callbraid/callbraid/build-" + variant + "\n"},
		{"  name: otelcol-callbraid\n", "  name: otelcol-callbraid-" + variant + "\n"},
		{"  output_path: ./build\n", "  output_path: ./build-" + variant + "\n"},
	}
}

func rename(manifest string, lines [][2]string) (string, error) {
	for _, line := range lines {
		if n := strings.Count(manifest, line[0]); n != 1 {
			return "", fmt.Errorf("expected %q once, got it %d times", line[0], n)
		}
		manifest = strings.Replace(manifest, line[0], line[1], 1)
	}
	return manifest, nil
}

// gateway is the manifest of the gateway's distribution, by that of the ordinary one: its components, at its versions, and
// the added ones at the end of their sections.
func gateway(ordinary string) (string, error) {
	manifest, err := rename(ordinary, renamed("gateway", "for several collectors, with the exporters that route between them"))
	if err != nil {
		return "", err
	}
	for _, of := range added {
		before, rest, ok := strings.Cut(manifest, "\n"+of.section+":\n")
		if !ok {
			return "", fmt.Errorf("expected a section %s, got none", of.section)
		}
		section, after, _ := strings.Cut(rest, "\n\n")
		last := strings.LastIndex(section, contrib)
		if last < 0 {
			return "", fmt.Errorf("expected %s with one that begins with %q, got none", of.section, contrib)
		}
		_, version, ok := strings.Cut(strings.TrimPrefix(section[last:], contrib), " ")
		if !ok || strings.ContainsAny(version, " \n") {
			return "", fmt.Errorf("expected a module and its version at the end of %s, got %q", of.section, section[last:])
		}
		for _, component := range of.components {
			section += "\n" + contrib + component + " " + version
		}
		manifest = before + "\n" + of.section + ":\n" + section + "\n\n" + after
	}
	return manifest, nil
}

// ofCollector matches the line of a component that is not ours, with the last part of its module's name.
var ofCollector = regexp.MustCompile(`^  - gomod: (?:go\.opentelemetry\.io/collector|github\.com/open-telemetry/opentelemetry-collector-contrib)/(receiver|processor|exporter|connector|extension)/\S*?([^/ ]+) v`)

// small is the manifest of the small distribution: all components of the project, and the necessary ones of others.
func small(ordinary string) (string, error) {
	manifest, err := rename(ordinary, renamed("small", "without the components of others that no shipped configuration for one collector needs"))
	if err != nil {
		return "", err
	}
	var kept strings.Builder
	found := map[string]bool{}
	for line := range strings.Lines(manifest) {
		if of := ofCollector.FindStringSubmatch(line); of != nil {
			if !slices.Contains(necessary, of[2]) {
				continue
			}
			found[of[2]] = true
		}
		kept.WriteString(line)
	}
	for _, name := range necessary {
		if !found[name] {
			return "", fmt.Errorf("expected a component %s, got none", name)
		}
	}
	return kept.String(), nil
}
