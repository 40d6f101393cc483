// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package nested builds OTLP requests whose attributes are nested as deep as the size of the request allows, and sends
// them over gRPC and HTTP. It writes requests as bytes from the inside out, so that neither building nor sending
// recurses.
//
// It knows the layout of OTLP (opentelemetry-proto 1.x: field numbers and JSON names), and no collector code.
package nested
