// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/connector/stackpairingconnector"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter"
	"github.com/callbraid/callbraid/exporter/otlpjsonfileexporter"
	"github.com/callbraid/callbraid/exporter/perfettoexporter"
	"github.com/callbraid/callbraid/extension/agentcontrolextension"
	"github.com/callbraid/callbraid/extension/memorybudgetextension"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
	"github.com/callbraid/callbraid/receiver/arthasreceiver"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver"
	"github.com/callbraid/callbraid/receiver/greysreceiver"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver"
)

// project is the path of the project's module.
const project = "github.com/callbraid/callbraid"

// described is a component and where it is in the project.
type described struct {
	directory string
	factory   component.Factory
}

// components are those of the project, in the order of the page.
var components = []described{
	{"receiver/bytefrogreceiver", bytefrogreceiver.NewFactory()},
	{"receiver/lttnglivereceiver", lttnglivereceiver.NewFactory()},
	{"receiver/ctffilereceiver", ctffilereceiver.NewFactory()},
	{"receiver/lttngjulreceiver", lttngjulreceiver.NewFactory()},
	{"receiver/rbkitreceiver", rbkitreceiver.NewFactory()},
	{"receiver/greysreceiver", greysreceiver.NewFactory()},
	{"receiver/arthasreceiver", arthasreceiver.NewFactory()},
	{"processor/stackpairingprocessor", stackpairingprocessor.NewFactory()},
	{"connector/stackpairingconnector", stackpairingconnector.NewFactory()},
	{"exporter/flamegraphexporter", flamegraphexporter.NewFactory()},
	{"exporter/otlpjsonfileexporter", otlpjsonfileexporter.NewFactory()},
	{"exporter/perfettoexporter", perfettoexporter.NewFactory()},
	{"extension/agentcontrolextension", agentcontrolextension.NewFactory()},
	{"extension/memorybudgetextension", memorybudgetextension.NewFactory()},
}

// complete is an error where the distribution, by the builder's manifest, has a component of
// the project that isn't known here. Converters have neither settings nor metrics.
func complete(manifest string) error {
	for line := range strings.Lines(manifest) {
		directory, ours := strings.CutPrefix(strings.TrimSpace(line), "import: "+project+"/")
		if ours && !strings.HasPrefix(directory, "converter/") && !slices.ContainsFunc(components, func(c described) bool { return c.directory == directory }) {
			return fmt.Errorf("builder-config.yaml has %s: add it to the components of internal/tools/configurationpage", directory)
		}
	}
	return nil
}
