// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttngrelay plays an LTTng relay daemon: it makes sessions of captures and of
// folders of CTF traces, and serves them to any viewer on a port, with the faults of
// real relay daemons and worse ones where they are wanted.
//
// The protocol is package lttnglive's. The way of the data:
//
//	capture.zip ──► FromCapture ──┐
//	                              ├──► Source ──► Server ──► viewers
//	CTF traces ───► FromDirectory ┘
package lttngrelay
