// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorded reads the files of recorded CTF traces. It is the file side of package session: a Connection has the
// metadata and the packets of one trace, as a relay daemon would send them.
//
//	pattern.go     which paths match the settings include and exclude
//	find.go        finds the directories of traces
//	identity.go    the trace that a directory belongs to, by its metadata
//	trace.go       one trace: its directories and its progress; the finder and the session share it
//	connection.go  the metadata and the streams of a trace, for one session; the packets of a stream, from its files
//	file.go        opens regular files only
//
// A stream of LTTng is known by the class and the instance in its packets. So the files of rotated chunks, of snapshots
// and of a ring of files are one stream, in the order of their sequence numbers. A packet that is in two files is read
// once. The files of other tracers are one stream each.
//
// The package follows no symbolic links below the fixed part of a pattern, reads regular files only, and keeps no whole
// file in memory.
package recorded
