// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package lttnglivereceiver is a viewer of LTTng relay daemons: it attaches to their
// sessions while they are recorded, and hands on every event as a log record, what
// enters and leaves functions as batches of call events, and the state of sessions as
// metrics.
//
// It knows what events mean. It knows neither how requests are laid out
// (internal/lttng/lttnglive), nor metadata and packets (internal/lttng/ctf), nor how a batch is
// (internal/call/callevent), and keeps no call stacks.
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
// # A session's life
//
// A session that is listed and can't be read is kept in watcher.warned, so that it is said
// once, until a list comes without it. Any other one gets a follower:
//
//	listed ──► connect, attach ──► read ──► closed: over
//	              ▲   │             │
//	              │   └──────┬──────┘
//	              │          ├──► gone, or shut down
//	              └─ pause ◄─┘ connection lost, refused, bad data
//
// Its flags are these:
//
//   - follower.attached: it was attached once. The next time is "again", and in the log only
//     if follower.said: a line has said why it was no longer.
//   - follower.warned has the warnings that a session gets once; follower.lines those that
//     come seldom, environment.lines those that all sessions share.
//   - follower.done is closed at the end of it. If the session was closed, follower.over is
//     set, and what is listed under its key is not read; if it was gone, it is, by a new
//     follower. follower.outlived is set when the connection that lists is lost: then over
//     holds no longer, since another relay daemon may have come. A closed session that it
//     still lists is read once more, and has nothing new.
//   - follower.forgotten: traces of it ended and were given up. So it was read, and seek no
//     longer counts.
//
// On a connection, attachment.complete says that all traces are known, and those streams
// have ended that were not told again: stream.present says which were. trace.on is the
// connection that told of a trace last. stream.hungUp is a stream of which nothing more is
// asked; it stays in its trace until all of it was handed on, and goes on if it is told
// again before.
//
// # A packet's way
//
//	attachment.tell    streams are told                         attachment.go
//	attachment.settle  metadata says which trace they are of    source.go
//	trace.open         the trace has them                       stream.go
//	attachment.round   each that is wanted is asked:            poll.go, room.go
//	  ask                for the index of its next packet
//	  fetch              for the packet, if there is room
//	  stream.give        the merger has it                      stream.go
//	attachment.work    what is known to be next is handed on    poll.go
//	  trace.run          event by event                         trace.go
//	  stream.readPacket  the packet's room is free              stream.go
//
// # The rest
//
// handover.go says how batches and log records are given to the pipelines, metrics.go
// which metrics are; internal/receiverkit/handover does it. All of a session is done by one
// goroutine; the pipeline for logs and that for metrics have one each.
package lttnglivereceiver
