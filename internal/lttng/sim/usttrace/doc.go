// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package usttrace writes CTF traces of simulated programs and kernels, of any length and in the layout of LTTng-UST 2.13
// and of LTTng's modules, to measure readers.
//
// A few processes have a few threads each, which move between CPUs, enter and leave functions, and sometimes write an
// event with texts, numbers and sequences. Calls are in a channel with large event headers, other events in one with
// compact headers. Each channel has a stream for each CPU. All CPUs are busy, so almost every event is in another
// stream than the previous one. The same options produce the same bytes.
//
// It shares no code with the reader.
package usttrace
