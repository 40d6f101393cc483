// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package greysreceiver is a client of Greys servers, which are attached to live Java processes. It requests counts of
// calls, call trees, recorded calls, stacks, classes and methods. It forwards the results as metrics, spans and log
// records.
//
// # Data flow
//
//	config.go, tasks.go     configuration, and its tasks
//	receiver.go             start and shutdown of all servers
//	server.go, steering.go  the settings of one server, and its commands for operators
//	  javamethods/server    one server: connect, identify, run sessions, and again after a pause
//	  internal/link         a connection, by GP or the text console
//	  javamethods/session   one session: commands, resets, orders of operators
//	  javamethods/process   sums and inventories of one process, all with limits
//	  javamethods/signals   results as spans, log records and points, with the queues to the pipelines
//	metrics.go              the state of a process as metrics
//
// Package internal/javamethods has what the receiver for Arthas shares: servers, sessions, processes, tasks and signals.
// Package internal/counters has the receiver's own metrics. The protocols are in internal/greys/gp and
// internal/greys/console.
//
// # States
//
//	server: unreached ──► probing ──► connected ──► unreached, and again after a pause
//	                         └──► given up: it does not know our version of the protocol
//	job:    due ──► running ──► over: limit reached, not supported, or ended by an operator
//	         │         │
//	         ▲         │
//	         └─────────┴── lost, refused, timed out, nothing matched: after a pause
//	                       list is complete: after its interval
//
// A job is a task for one process. If the ID, the sessions, the version or the protocol of a server show another
// process, all sums and limits begin at zero. If the same process returns, they continue.
//
// # Goroutines
//
// Each server has one goroutine, which owns its session. Each command has another goroutine, which handles its replies.
// One more requests details of recorded calls. A reply is handled under the lock of the session's work, and inside it
// under the lock of the process. No lock is held during a request. Each signal has a goroutine that forwards it.
package greysreceiver
