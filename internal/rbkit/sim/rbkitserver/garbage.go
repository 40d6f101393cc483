// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitserver

import "bytes"

// collectionOf begins a released message with events, at the time 1, without a number.
var collectionOf = []byte{0x83, 0x00, 0x07, 0x01, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x02}

// garbage has messages that no server should send. Each has another mistake.
var garbage = [][]byte{
	{},
	[]byte("GET / HTTP/1.1\r\n\r\n"),
	bytes.Repeat([]byte{0xc1}, 64),
	// An array of 4 G events without events.
	append(bytes.Clone(collectionOf), 0xdd, 0xff, 0xff, 0xff, 0xff),
	// Arrays in arrays, a million deep.
	append(append(bytes.Clone(collectionOf), 0x91), bytes.Repeat([]byte{0x91}, 1<<20)...),
	// A map of 4 G entries as an event.
	append(bytes.Clone(collectionOf), 0x91, 0xdf, 0xff, 0xff, 0xff, 0xff),
	// A text of 4 GiB as a class.
	append(bytes.Clone(collectionOf), 0x91, 0x83, 0x00, 0x00, 0x01, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0,
		0x02, 0x82, 0x03, 0x01, 0x04, 0xdb, 0xff, 0xff, 0xff, 0xff),
	// A time that is not a number.
	append(bytes.Clone(collectionOf), 0x91, 0x82, 0x00, 0x02, 0x01, 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1),
	// An object ID below 0.
	append(bytes.Clone(collectionOf), 0x91, 0x83, 0x00, 0x01, 0x01, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x02, 0x81, 0x03, 0xff),
}

// Garbage returns the n-th kind of garbage. Kinds repeat after the last one.
func Garbage(n int) []byte { return garbage[n%len(garbage)] }

// GarbageKinds is the number of kinds of garbage.
func GarbageKinds() int { return len(garbage) }
