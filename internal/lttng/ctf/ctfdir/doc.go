// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctfdir reads CTF traces from directories as tracers write them: a file named metadata, and files of packets
// beside it, one for each stream. It ignores other directories in it, such as LTTng's index, and files that begin
// with a dot.
package ctfdir
