// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package kit runs the built distribution for end-to-end tests: it starts a
// collector with a configuration, waits until it is ready, looks at it from
// outside (its own metrics, its memory, its open files), ends it, and reads back
// what it exported. It plays the peers that speak OTLP.
//
// It knows no tracer's protocol: agents are the tests' own.
package kit
