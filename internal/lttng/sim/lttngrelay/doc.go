// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttngrelay simulates an LTTng relay daemon. It makes sessions from captures and from directories of CTF
// traces, and serves them to any viewer on a port. On request it has the faults of real relay daemons, and worse
// ones.
//
// The protocol is in package lttnglive. The way of the data:
//
//	capture.zip ──► FromCapture ──┐
//	                              ├──► Source ──► Server ──► viewers
//	CTF traces ───► FromDirectory ┘
package lttngrelay
