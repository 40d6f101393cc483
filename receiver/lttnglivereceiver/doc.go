// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package lttnglivereceiver is a viewer of LTTng relay daemons. It attaches to their sessions while they
// are recorded. It delivers every event as a log record, function calls as batches of call events, and
// the state of sessions as metrics.
//
// The root contains the configuration, the life cycle, and the metrics of sessions (metrics.go). Batches and log records are
// opened by shared.go of internal/lttng/session. watcher.go lists sessions, and reads each that matches with package internal/lttng/session. An event passes
// these packages:
//
//	internal/lttng/session      one session over all its connections; packets go to their trace
//	internal/lttng/lttnglive    the protocol of the relay daemon
//	internal/lttng/ctf, merge   metadata and packets; events of a trace in order of time
//	internal/lttng/process      the process of each event: resource, objects, names
//	internal/lttng/mapping      the meaning of the fields of an event class
//	internal/call/callstream   call events of a process in batches, with breaks
//	internal/receiverkit/handover  batches, log records and metrics go to the pipelines
//
// internal/lttng/position stores the positions of traces, so no event is read twice.
//
// One goroutine does all the work of a session. The pipelines for logs and for metrics have one each.
package lttnglivereceiver
