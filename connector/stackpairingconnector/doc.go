// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package stackpairingconnector pairs the call events of traced programs, which receivers pack
// into batches. It makes metrics and profiles of all calls, and spans of selected traces.
//
// The Collector creates a connector for each pair of signals that pipelines use. They share one
// engine (package engine): shared.go. outputs.go sends metrics and profiles by interval; packages
// functionmetrics and pathprofiles make them of the engine's sums. The spans come from the engine.
package stackpairingconnector
