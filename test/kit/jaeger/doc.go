// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package jaeger runs a real Jaeger for tests, with storage in memory, and asks it as its
// users do: by the API of its pages, which says what it finds wrong with spans, and by that
// which gives OTLP. It knows no tracer's protocol.
//
// `make backends` builds Jaeger from its module, which has no pages in it: what a person sees
// is drawn by the browser from what these APIs say.
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
