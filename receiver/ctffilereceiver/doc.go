// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package ctffilereceiver reads recorded CTF traces from files: every event as a log record, function calls as batches
// of call events, and the state of traces as metrics. It reads them with the code of lttng_live.
//
// The root contains the configuration, the life cycle, and the metrics of traces (metrics.go). Batches and log records are
// opened by shared.go of internal/lttng/session. reader.go finds
// traces, and reads each with a session of package internal/lttng/session, whose data comes from internal/recorded.
// progress.go logs how far it is, and ballast.go lets Go collect garbage less often.
//
// One goroutine finds traces, and one does all the work of a trace. The pipelines for logs and for metrics have one
// each.
package ctffilereceiver
