// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package perfettoexporter writes spans, metrics and log records to trace files that Perfetto's viewer and trace processor
// open.
//
// traces.go, metrics.go and logs.go read the signals. exporter.go counts, logs, and writes chunks of them to one file.
// internal/tracefile knows the format, and internal/componentkit/recordfile keeps the chunks of the file whole.
package perfettoexporter
