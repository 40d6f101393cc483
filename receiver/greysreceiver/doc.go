// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package greysreceiver is a client of Greys servers, which are attached to live Java
// processes: it has them count calls, and tell call trees, recorded calls, stacks, and
// classes and methods, and hands that on as metrics, spans and log records.
//
// It knows what is asked when, and what answers mean. It knows neither of the protocols
// (internal/greys/gp and internal/greys/console).
//
// # The way of the data
//
// A server (server.go) is one that is configured: it is followed, whatever happens to its
// connections. A link (link.go) is how one is asked that speaks a known protocol. While
// there is one it is attended (attend.go), and asked now and then who it is (meet.go): each
// thing that is to be asked is a task (task.go), each time that it is asked a run (run.go),
// which comes to something (outcome.go), and what runs leave in classes is taken out again
// (reset.go), as far as patterns say that nobody needs it (pattern.go).
//
//	server: unreached ──► probing ──► connected ──► unreached, and again after a pause
//	                         └──► given up: it doesn't know our version of the protocol
//	task:   due ──► running ──► over: by its limit, because it is not supported, or because
//	         │         │               somebody had it ended
//	         ▲         │
//	         └─────────┴── lost, refused, timed out, nothing matched: after a pause
//	                       listed all: after its interval
//
// A process (process.go) is one life of a server, with a resource (resource.go) that says
// also what this machine knows of it (local.go). It has the tasks, and what became of them:
// sums of calls (calls.go), which recorded calls were listed (records.go), and which classes
// and methods were found (inventory.go). When the server is another process, by its ID, its
// sessions, its version or its protocol, all begins anew; when it comes back as the same, sums and limits
// go on.
//
// Where servers are shown to whoever steers them (steering.go), the goroutine that follows
// one is given what somebody wants (orders.go): to start something (starting.go), to end it
// or to reset (ending.go), or to know what there is (tasklist.go).
//
// What becomes of it is in a file for each signal: metrics.go; spans.go, with call trees in
// tree.go and what is asked of recorded calls in details.go; and logs.go. It goes to the
// pipelines by handover.go. telemetry.go is what the receiver counts of itself.
//
// Each server has one goroutine, which owns the state of its tasks. Each run has another,
// which handles the answers, and one more asks for details. What they share of a process is
// guarded by one lock, which is taken once for an answer, and never held while something is
// asked. Each signal has a goroutine that hands it on, and metrics one that collects them.
package greysreceiver
