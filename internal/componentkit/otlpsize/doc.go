// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpsize estimates the memory of a decoded OTLP request, and the depth of its nested values, from the bytes of
// the request.
//
// The Collector's decoders recurse once for each level of lists and maps, and 2 bytes of a
// request can become a span of 200. So a component checks a request before it decodes it. The package
// walks the bytes of protobuf once, without recursion, by a table of the messages of
// opentelemetry-proto 1.x. The costs in the table are the sizes of the Collector's structs
// (go.opentelemetry.io/collector/pdata 1.65), rounded up as Go's allocator does. For JSON it
// counts brackets and commas.
package otlpsize
