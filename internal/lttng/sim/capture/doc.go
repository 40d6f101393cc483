// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package capture reads captures of the LTTng live protocol: all bytes between a viewer and a relay daemon on one
// connection.
//
// A capture is a zip file. In any directory it has:
//
//   - viewer-to-relay.bin, relay-to-viewer.bin: the bytes of each direction
//   - times.tsv: a line for each piece, in order of time: nanoseconds, direction (c2s from the viewer, s2c
//     from the relay daemon), offset and length of the piece, separated by tabs. At the end of a side, the
//     length is EOF.
//
// Replies do not name their request, so both directions are parsed together.
package capture
