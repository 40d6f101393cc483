// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package flamegraphexporter folds spans and profiles into call trees by service, and shows
// them as flame graphs.
//
// What a span or a sample says is read in traces.go and profiles.go; how it is folded is
// internal/call/calltree's matter, which knows no collector. Both signals of a configuration
// fold into one store.
package flamegraphexporter
