// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package rbkitreceiver is a client of Rbkit servers, which run inside Ruby processes. It
// delivers statistics of the garbage collector and of objects as metrics, garbage collections
// as spans, dumps of all objects as log records, and CPU samples and snapshots of allocations
// as profiles.
//
// It knows what events mean. Package internal/rbkit knows their layout, and
// internal/rbkit/zmtp how ZeroMQ transports them.
//
// # The way of the data
//
//  1. receiver.go starts one server (server.go) for each configured one. A server receives
//     messages, with as many connections as that takes.
//  2. It identifies the process that sends them (identity.go), and switches on profiles with
//     commands on a connection of its own (control.go, switches.go). If the server doesn't
//     answer there, its messages are received without an identity. steering.go has the
//     commands that extensions offer.
//  3. The process (process.go) is one life of a server with one resource (resource.go). It
//     reads the events of messages and passes each to one part: statistics (stats.go), garbage
//     collections (cycles.go), objects (objects.go), dumps (dumps.go, idset.go), allocations
//     (allocations.go, snapshot.go) and CPU samples (samples.go). The parts know no
//     connection. names.go numbers classes and files; limits.go knows which limit was reached.
//  4. Spans (spans.go), log records (logs.go, dumprecords.go, serverrecords.go) and profiles
//     (profile.go) go to the queues of outputs.go. metrics.go collects the states of processes.
//
// A file uses only files below it; receiver.go and steering.go are at the top, config.go and
// telemetry.go at the bottom.
//
// # Goroutines
//
// Each server has one goroutine that receives and handles its messages. A connected server has
// two more: one identifies it and sends commands, one delivers old data. One lock guards the
// state of a server and its process. The receiver takes it once for a message, and doesn't
// hold it during a request.
package rbkitreceiver
