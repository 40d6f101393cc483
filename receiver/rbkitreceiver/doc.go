// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package rbkitreceiver is a client of Rbkit servers, which run inside Ruby processes. It
// delivers statistics of the garbage collector and of objects as metrics, garbage collections
// as spans, dumps of all objects as log records, and CPU samples and snapshots of allocations
// as profiles.
//
// It knows the meaning of events. Package internal/rbkit knows their layout, and
// internal/rbkit/zmtp how ZeroMQ transports them.
//
// # The way of the data
//
//	config.go, receiver.go  configuration; start and shutdown of all servers
//	  internal/session      one server: connect, request, send commands, restore at the end
//	  internal/life         which process of the server sends the messages
//	  internal/process      one process: reads the events of messages
//	    internal/heap       objects, dumps and allocations, by class and file
//	    internal/profile    open profiles of CPU samples and of allocations
//	    internal/records    a log record for each object of a dump
//	outputs.go              queues to the pipelines, and the settings of the packages
//	spans.go, logs.go       garbage collections as spans; dumps and events of servers as log records
//	metrics.go              states of processes as metrics; statmetrics.go has those of statistics
//	steering.go             servers as agents of extensions
//
// Package internal/origin knows identity and resource of a process, internal/names the numbers of
// classes and files, and internal/counters the receiver's own metrics.
//
// # Goroutines
//
// Each server has one goroutine that receives and handles its messages. A connected server has
// two more: one identifies it and sends commands, one delivers old data. The lock of package life
// guards the process. A message locks it once, and no lock of it is held during a request.
package rbkitreceiver
