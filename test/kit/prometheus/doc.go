// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs a real Prometheus for tests, which scrapes collectors, and asks it like
// users. It knows no tracer's protocol.
//
// A test needs only:
//
//	server := prometheus.Start(t, addressOfTheExporter)
//	server.Await(t, `sum(ruby_object_created_total)`, 45_662)
//	byClass := server.ByLabel(t, `ruby_heap_live_objects`, "ruby_class")
//	of := server.Metadata(t)["ruby_heap_live_objects"]
package prometheus
