// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package stackpairingconnector pairs the call events of traced programs, which receivers pack
// into batches. It makes metrics and profiles of all calls, and spans of selected traces.
//
// The Collector creates a connector for each pair of signals that pipelines use. They share one
// engine (package engine), which makes the spans. From file to file:
//
//  1. shared.go has one pairer for each configuration, and the inputs of its pipelines.
//  2. connector.go is the pairer: its life cycle, and the interval of metrics and profiles.
//  3. sums.go receives the sums of the engine. Packages functionmetrics and pathprofiles make metrics and
//     profiles of them.
//  4. outputs.go sends metrics and profiles, and holds those that the next component refused.
//  5. instruments.go connects the engine to the own metrics.
//
// A limit can leave no place for a function, a path or a resource. Its calls are then summed in the rest. In this code
// "rest", callsum.PathRest, the frame "(further paths)", the attribute otel.metric.overflow, the unnamed origin
// and "folded calls" all mean that.
package stackpairingconnector
