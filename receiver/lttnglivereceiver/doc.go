// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package lttnglivereceiver is a viewer of LTTng relay daemons: it attaches to their
// sessions while they are recorded, and hands on every event as a log record, what
// enters and leaves functions as batches of call events, and the state of sessions as
// metrics.
//
// It knows what events mean. It knows neither how requests are laid out
// (internal/lttnglive), nor metadata and packets (internal/ctf), nor how a batch is
// (internal/callevent), and keeps no call stacks.
//
// # The way of the data
//
// watcher.go lists sessions and starts a follower for each that is to be read
// (follower.go), which lives as long as the session does, whatever happens to its
// connections. An attachment (attachment.go) is one connection of it: it asks every
// stream for its next packet (poll.go) and gives what comes to the trace that the
// stream is of, as its metadata says (source.go). A trace (trace.go) merges its streams
// by time. Where something is missing (losses.go) the calls of all its processes break;
// traceend.go is how it ends. What a trace keeps outlives the connection, so nothing is
// read twice (position.go).
//
// Each event goes two ways. What is to be done with it is worked out once for its
// class (plan.go): which fields become which attributes of a log record (logs.go,
// columns.go, render.go; records.go for what Java and Python log), and whether it is a
// call event (classify.go). The latter belongs to a process (process.go), which packs them
// (batching.go) with names that come from its list of objects (addresses.go) and with
// the breaks in the data (breaks.go).
//
// handover.go says how batches and log records are given to the pipelines, metrics.go
// which metrics are; internal/handover does it. All of a session is done by one
// goroutine; the pipeline for logs and that for metrics have one each.
package lttnglivereceiver
