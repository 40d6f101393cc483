// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package kit runs the built distribution for end-to-end tests. It starts a collector with a
// configuration, waits until it is ready, measures it from outside (its own metrics, its memory,
// its open files), ends it, and reads its exported data. It simulates peers that speak OTLP.
//
// It knows no tracer's protocol: tests have their own agents.
package kit
