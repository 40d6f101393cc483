// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package jaeger runs a real Jaeger for tests, with storage in memory. It asks Jaeger like users:
// by the API of its pages, which reports problems of spans, and by the API for OTLP. It knows no
// tracer's protocol.
//
// `make backends` builds Jaeger from its module, which has no pages: the browser would draw them
// from the data of these APIs.
//
// A test needs only:
//
//	server := jaeger.Start(t, jaeger.V2)
//	// ... a collector exports to server.OTLP, and has sent all
//	for _, trace := range server.Search(t, "shop", jaeger.MaxTraces) {
//		assert.Empty(t, trace.AllWarnings())
//		traces := server.Trace(t, trace.ID)
//	}
package jaeger
