// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package capture reads captures of the LTTng live protocol: everything that a viewer
// and a relay daemon sent each other on one connection.
//
// A capture is a zip file with, in any folder:
//
//   - viewer-to-relay.bin, relay-to-viewer.bin: the bytes of each direction
//   - times.tsv: a line for each piece that was sent, in order of time: nanoseconds,
//     direction (c2s from the viewer, s2c from the relay daemon), offset and length of
//     the piece, with tabs between them; EOF instead of a length where a side closed
//
// Replies do not say what they are replies to, so both directions are taken apart
// together.
package capture
