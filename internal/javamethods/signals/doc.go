// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package signals makes spans, log records and metric points of the results of sessions. It has the queues of spans and
// log records, for all processes of a receiver. Events and attributes that are no convention have the name of the
// tracer as namespace.
package signals
