// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package arthasreceiver is a client of Arthas servers, which are attached to live Java processes. It requests counts of
// calls, call trees, stacks, watched values, recorded calls, the state of the JVM, and profiles. It forwards the results as
// metrics, spans, log records and profiles.
//
// # Data flow
//
//	config.go, tasks.go     configuration, and its tasks
//	receiver.go             start and shutdown of all servers
//	server.go, steering.go  the settings of one server, and its commands for operators
//	  javamethods/server    one server: connect, identify, run sessions, and again after a pause
//	  javamethods/session   one session: commands, resets, orders of operators
//	  internal/link         a command in its session of Arthas, and sessions that are left
//	  internal/remembered   the open sessions, in memory and in a storage extension
//	  javamethods/process   sums of one process
//	  javamethods/signals   results as spans, log records and points, with the queues to the pipelines
//	jvm.go                  the state of the JVM, by interval
//	metrics.go              the state of a process as metrics
//	profiles.go             the profiles of a process
//	  internal/profiling    the periods of the program's profiler
//
// Package internal/javamethods has what the receiver for Greys shares.
//
// # Goroutines
//
// Each server has one goroutine, and one more for each command, for the state of the JVM, and for the profiler. The
// goroutine of a command owns its session of Arthas. Each signal has a goroutine that forwards it.
package arthasreceiver
