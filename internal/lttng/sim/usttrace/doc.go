// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package usttrace writes CTF traces of programs that never ran, of any length, laid
// out as LTTng-UST 2.13 lays out its own: to measure readers with.
//
// A few processes have a few threads each, which wander over the CPUs, enter and leave
// functions, and now and then write an event with texts, numbers and sequences. Calls
// stand in a channel whose events have the large header, the other events in one with
// the compact header; each channel has a stream for each CPU. All CPUs are busy, so
// that almost every event is of another stream than the one before. By the same options
// it writes the same bytes.
//
// It shares no code with the reader.
package usttrace
