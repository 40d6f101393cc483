// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const head = `<!-- Made by make generate: change the metadata.yaml, the table in the README.md, or the code of a component. -->

# Configuration

This page lists all settings and all metrics of all components, except the two histograms of
[` + "`rbkit`" + `](../receiver/rbkitreceiver/README.md) and the metrics that the connector
[` + "`stack_pairing`" + `](../connector/stackpairingconnector/README.md#metrics) sends, which are on their pages. The components' own
pages explain how settings work together. The folder [config](../config) has complete configurations.

- A name with dots is a nested setting: ` + "`batch.max_bytes`" + ` is ` + "`max_bytes`" + ` below ` + "`batch`" + `. ` + "`[]`" + ` marks a list.
- A duration is written as ` + "`200ms`" + `, ` + "`5s`" + `, ` + "`1m30s`" + ` or ` + "`2h`" + `. Sizes are in bytes unless the name ends in ` + "`_mib`" + `. The range is
  the text of the error for a value outside of it. If it depends on another setting, this page uses that setting's default.
- For settings of the Collector itself, such as those of TLS and of HTTP servers, see the linked pages.
- The collector serves metrics of a component itself on <http://localhost:8888/metrics>, unless
  ` + "`service::telemetry::metrics`" + ` sets another address. Each has the component's ID as the label ` + "`receiver`" + `, ` + "`processor`" + `,
  ` + "`connector`" + `, ` + "`exporter`" + ` or ` + "`extension`" + `: ` + "`sum without (receiver)`" + ` adds instances up. With the feature gate
  ` + "`telemetry.newPipelineTelemetry`" + `, set ` + "`without_scope_info: false`" + ` of the Prometheus reader: the Collector's own metrics
  need it.
- The metrics that a component sends to a pipeline go to the pipeline's exporters. In Prometheus their dots are ` + "`_`" + `. Their
  names end with the unit and, for counters, with ` + "`_total`" + `.
`

// section returns the part of the page about a component.
func (c described) section(project string) (string, error) {
	directory := filepath.Join(project, c.directory)
	m, err := readMetadata(directory)
	if err != nil {
		return "", err
	}
	rows, err := readRows(directory)
	if err != nil {
		return "", err
	}
	settings, err := c.table(rows)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s `%s`\n\n%s Stability: %s. [Its own page](../%s/README.md) describes it.\n\n",
		strings.ToUpper(m.Status.Class[:1])+m.Status.Class[1:], m.Type, m.Description, m.stability(), c.directory)
	b.WriteString("| Setting | Type | Default | Range | Meaning |\n|---|---|---|---|---|\n" + relinked(settings, c.directory))
	writeMetrics(&b, "### Metrics that `"+m.Type+"` sends to pipelines", "", m.Metrics)
	writeMetrics(&b, "### Metrics of `"+m.Type+"` itself", "otelcol_", m.Telemetry.Metrics)
	return b.String(), nil
}

// table is the rows of the page for those of the README, which have to fit the settings.
func (c described) table(rows []row) (string, error) {
	all := settingsOf(c.factory.CreateDefaultConfig())
	said := map[string]bool{}
	var b strings.Builder
	for _, r := range rows {
		named, err := r.named(all)
		if err != nil {
			return "", err
		}
		for _, s := range named {
			said[s.name] = true
		}
		if err := r.checkDefaults(named); err != nil {
			return "", err
		}
		ranges, err := c.ranges(named)
		if err != nil {
			return "", err
		}
		kinds := each(named, setting.kind)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.title, kinds, r.quotedDefault(named), ranges, r.meaning)
	}
	for _, s := range all {
		if list, _, inList := strings.Cut(s.name, "[]"); !said[s.name] && !s.foreign && !(inList && said[list]) {
			return "", fmt.Errorf("README.md: expected a row for the setting %s, got none", s.name)
		}
	}
	return b.String(), nil
}

// named are the settings that a row is about.
func (r row) named(all []setting) (named []setting, err error) {
	for _, name := range r.names {
		before := len(named)
		last, inLists := strings.CutPrefix(name, everywhere)
		for _, s := range all {
			if s.name == name || inLists && s.inList() && s.last() == last {
				named = append(named, s)
			}
		}
		if len(named) == before {
			return nil, fmt.Errorf("README.md: %s: there is no such setting", name)
		}
	}
	return named, nil
}

// checkDefaults compares the defaults of a row with those of its settings.
func (r row) checkDefaults(named []setting) error {
	defaults := strings.Split(strings.ReplaceAll(r.fallback, "`", ""), ", ")
	for i, s := range named {
		value, comparable := s.scalar()
		if !comparable || s.inList() {
			continue
		}
		written := defaults[0]
		if len(defaults) == len(named) {
			written = defaults[i]
		}
		if !sameDefault(strings.Trim(written, `"`), value) {
			return fmt.Errorf("README.md: %s: expected the default %q, got %q", s.name, value, written)
		}
	}
	return nil
}

// quotedDefault is the default of a row as code, also where the README has it as text.
func (r row) quotedDefault(named []setting) string {
	if _, scalar := named[0].scalar(); !scalar || strings.Contains(r.fallback, "`") || r.fallback == "none" {
		return r.fallback
	}
	return "`" + strings.ReplaceAll(r.fallback, ", ", "`, `") + "`"
}

func sameDefault(written, value string) bool {
	if written == value || written == "none" && value == "" {
		return true
	}
	is, err := time.ParseDuration(value)
	says, wrong := time.ParseDuration(written)
	return errors.Join(err, wrong) == nil && is == says
}

func (c described) ranges(named []setting) (string, error) {
	var all []string
	for _, s := range named {
		bounds, err := rangeOf(c.factory, s.name)
		if err != nil {
			return "", err
		}
		all = append(all, bounds)
	}
	return once(all), nil
}

// each returns a text for each setting of a row.
func each(named []setting, textOf func(setting) string) string {
	var all []string
	for _, s := range named {
		all = append(all, textOf(s))
	}
	return once(all)
}

// once returns a single text if all texts of a row are the same.
func once(all []string) string {
	if len(slices.Compact(slices.Clone(all))) == 1 {
		return all[0]
	}
	return strings.Join(all, "; ")
}

func writeMetrics(b *strings.Builder, title, prefix string, metrics map[string]metric) {
	if len(metrics) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n\n| Metric | Unit | Kind | Meaning |\n|---|---|---|---|\n", title)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		m := metrics[name]
		fmt.Fprintf(b, "| `%s%s` | `%s` | %s | %s |\n", prefix, name, m.Unit, m.kind(), strings.ReplaceAll(m.Description, "|", `\|`))
	}
}
