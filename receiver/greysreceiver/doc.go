// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package greysreceiver is a client of Greys servers, which are attached to live Java processes. It
// asks them to count calls, and for call trees, recorded calls, stacks, classes and methods. It
// forwards the results as metrics, spans and log records.
//
// # The way of the data
//
//	config.go, tasks.go     configuration, and the tasks of it
//	receiver.go             start and shutdown of all servers
//	server.go               one server: connect, identify, ask, and again after a pause
//	  internal/link         a connection, by GP or the text console
//	  internal/session      one session: commands, resets, orders of operators
//	  internal/process      sums and inventories of one process, all of them bounded
//	traces.go, logs.go,     results of a session as spans and log records, the state of a process
//	metrics.go              as metrics
//	handover.go             queues to the pipelines
//	steering.go             commands of operators
//
// Package internal/task defines tasks, internal/counters the receiver's own metrics. The protocols
// are in internal/greys/gp and internal/greys/console.
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
// A job is a task as one process is asked for it. If the server is another process, by its ID, its
// sessions, its version or its protocol, everything begins at zero. If the same process comes back,
// sums and limits go on.
//
// # Goroutines
//
// Each server has one goroutine, which owns its session. Each command has another, which handles
// its replies, and one more asks for details. The lock of the session's work is held while a reply is
// handled, and that of the process inside it; no lock is held while something is asked. Each signal
// has a goroutine that forwards it.
package greysreceiver
