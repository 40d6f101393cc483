// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package process follows the traced processes of LTTng's traces: their resources, their loaded objects,
// the names of their functions and threads, and their call streams. It makes log records and batches of
// call events from events that are in order of time.
//
// A Group has the traces of one session or recording, a Trace the processes of one CTF trace. An event
// passes the files in this order:
//
//	trace.go       Trace.ReadEvent finds its process, and its lane if it is a call event
//	process.go     state dump: objects.go; function and lane: names.go; call event: package callstream
//	logs.go        the log record, by package mapping
//	group.go       bounds the memory of all processes together
//	shared.go      totals and warnings of a group; settings.go; origin.go: the resource of a process
//
// The package knows no files, no sessions and no connections. It keeps no call stacks.
package process
