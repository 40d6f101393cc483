// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package mapping knows the meaning of LTTng's events: which fields become which attributes of a log
// record, which events are function calls, and which describe the state of their process.
//
// A Plan is made once for each event class (plan.go), and applied to each event:
//
//	contexts.go    the process and thread of the event
//	stateevent.go  its part in the state of the process: objects loaded and unloaded
//	callplan.go    call events, by name or by a call rule
//	records.go     its log record: severity.go, columns.go, render.go, recordsize.go, texts.go
//	loggers.go     the fields of the records of logging libraries
//	field.go       fields and their values
//
// The package has no state of a trace, and knows no sessions and no connections. Package
// internal/lttng/process applies the plans.
package mapping
