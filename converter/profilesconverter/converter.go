// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilesconverter makes a collector accept pipelines of profiles without a command line flag.
// The Collector puts them behind a feature gate, because profiles are alpha. The converter changes no
// configuration. It switches the gate on if a configuration has a pipeline of profiles.
//
// A manifest of ocb names it in the section converters.
package profilesconverter

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/featuregate"
)

// gate is the Collector's feature gate for pipelines of profiles.
const gate = "service.profilesSupport"

// NewFactory returns the factory of the converter.
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter {
		return &converter{featuregate.GlobalRegistry()}
	})
}

type converter struct{ gates *featuregate.Registry }

// Convert switches the gate on if the configuration needs it, also if --feature-gates switches it off: without the
// gate, the Collector does not start with such a configuration. The Collector validates pipelines after all
// converters, and then reports a section that is no map.
func (c *converter) Convert(_ context.Context, configuration *confmap.Conf) error {
	pipelines, _ := configuration.Get("service::pipelines").(map[string]any)
	for id := range pipelines {
		if signal, _, _ := strings.Cut(id, "/"); strings.TrimSpace(signal) != "profiles" {
			continue
		}
		if !c.hasGate() {
			return nil
		}
		if err := c.gates.Set(gate, true); err != nil {
			return fmt.Errorf("pipeline %s needs the feature gate %s: %w", id, gate, err)
		}
		return nil
	}
	return nil
}

// hasGate reports whether the Collector has the gate. It removes gates that are not needed any more.
func (c *converter) hasGate() (has bool) {
	c.gates.VisitAll(func(g *featuregate.Gate) { has = has || g.ID() == gate })
	return has
}
