// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package rbkitreceiver is a client of Rbkit servers, which run inside Ruby processes: it
// hands on the statistics of the garbage collector and what is known of objects as
// metrics, each garbage collection as spans, dumps of all objects as log records, and CPU
// samples and snapshots of allocations as profiles.
//
// It knows what events mean. It knows neither how they are laid out (internal/rbkit), nor
// how ZeroMQ transports them (internal/zmtp).
//
// # The way of the data
//
// A server (server.go) is one that is configured: it is followed, whatever happens to its
// connections. Its requests have a connection of their own (control.go), on which it is
// told what to switch on (and off again, switched.go), and says who it is (meeting.go);
// where nobody answers there, what is published is received all the same. A process (process.go) is one life of a server. It is told of
// every event, and passes it on to what the event is about: statistics (stats.go), garbage
// collections (cycles.go), objects that are created and destroyed (objects.go), dumps
// (dumps.go), snapshots of allocations (allocations.go), and CPU samples (samples.go). None
// of these knows sockets or pipelines.
//
// What they make goes to the pipelines by handover.go: spans, log records and profiles as
// they are made, and metrics (metrics.go) at every collection.
//
// Each server has one goroutine that receives and handles its messages, and, while it is
// connected, one for its requests and one that hands on what is old. The state of a process
// is guarded by one lock, which is taken once for a message, and never held while something
// is asked.
package rbkitreceiver
