// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package arthasreceiver is a client of Arthas servers, which are attached to live Java processes. It requests counts of
// calls, call trees, stacks, watched values, recorded calls, and the state of the JVM. It forwards the results as metrics,
// spans and log records.
//
// # Data flow
//
//	config.go, tasks.go     configuration, and its tasks
//	receiver.go             start and shutdown of all servers
//	  internal/session      one server: identify, end old sessions, run commands, restore classes
//	  internal/remembered   the open sessions, in memory and in a storage extension
//	output.go               results of a server, to the queues of the pipelines
//	  traces.go, logs.go    results as spans and log records
//	metrics.go              the state of a process as metrics
//
// # Goroutines
//
// Each server has one goroutine, and one more for each command and for the state of the JVM. The goroutine of a command
// owns its session. Each signal has a goroutine that forwards it.
package arthasreceiver
