// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package flamegraphexporter folds spans and profiles into call trees by service, and shows
// them as flame graphs.
//
// traces.go and profiles.go read spans and samples. internal/call/calltree, which knows no
// collector, folds them. Both signals of a configuration fold into one store.
package flamegraphexporter
