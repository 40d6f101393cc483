// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package nested makes OTLP requests whose attributes are nested as deep as the request has
// bytes, and sends them over gRPC and HTTP. Requests are written as bytes from the inside
// out, so that neither making nor sending one recurses.
//
// It knows the layout of OTLP (opentelemetry-proto 1.x: field numbers and JSON names) and no
// collector.
package nested
