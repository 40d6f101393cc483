// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package rbkitreceiver is a client of Rbkit servers, which run inside Ruby processes: it
// hands on the statistics of the garbage collector and what is known of objects as
// metrics, each garbage collection as spans, dumps of all objects as log records, and CPU
// samples and snapshots of allocations as profiles.
//
// It knows what events mean. It knows neither how they are laid out (internal/rbkit), nor
// how ZeroMQ transports them (internal/rbkit/zmtp).
//
// # The way of the data
//
// A server (server.go) is one that is configured: it is followed, whatever happens to its
// connections. Its requests have a connection of their own (control.go), on which it is
// told what to switch on (wanted.go; and off again, switched.go), and says who it is
// (meeting.go), and what somebody wants who steers it (steering.go);
// where nobody answers there, what is published is received all the same.
//
// A process (process.go) is one life of a server, with a resource (resource.go) that says
// also what this machine knows of it (local.go). It goes through the events of messages
// (events.go), and tells each to what it is about: statistics (stats.go), garbage
// collections (cycles.go), objects that are created and destroyed (objects.go), dumps
// (dumps.go and idset.go), snapshots of allocations (allocations.go counts them, snapshot.go makes
// profiles of them), and CPU samples (samples.go). None of these knows sockets. Classes and
// files, of which there may be only so many, are names.go; limits.go says that they are
// too many, or something else is.
//
// What becomes of it is in a file for each signal: metrics.go and histogram.go, spans.go,
// logs.go, and profile.go, which has the tables that all profiles are written with. It goes
// to the pipelines by handover.go: spans, log records and profiles as they are made, and
// metrics at every collection. telemetry.go is what the receiver counts of itself.
//
// Each server has one goroutine that receives and handles its messages. While it is
// connected there are two more: one asks who it is and gives it orders (attend.go), and one
// hands on what is old enough; the first of them begins the second. Each signal has one
// that hands it on, and metrics one that collects them. The state of a process
// is guarded by one lock, which is taken once for a message, and never held while something
// is asked.
package rbkitreceiver
