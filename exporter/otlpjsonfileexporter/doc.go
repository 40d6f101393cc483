// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package otlpjsonfileexporter writes spans, logs, metrics and profiles to a file, as one line
// of OTLP JSON for each hand-over.
//
// signals.go makes the JSON, exporter.go counts and logs; internal/componentkit/recordfile, which knows no
// collector, keeps the lines of the file whole. All signals of a configuration share one file.
package otlpjsonfileexporter
