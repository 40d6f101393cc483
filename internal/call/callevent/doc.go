// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package callevent has call events, and the batch of them inside one pdata span. Receivers and the
// stack_pairing processor share it.
//
// It knows the layout of a batch. It knows no tracer's protocol and no call stacks.
//
// # Barriers in batches
//
// Breaks and the end of a stream are barriers. A receiver remembers them and repeats them, so that no event after a
// break arrives without the break:
//
//  1. A batch has each barrier that reaches into its sequence numbers: From is at most its last number, and To is above
//     its first one.
//  2. It also has the last barrier that ends at or below its first number.
//  3. It may have further ones, because a repeated barrier changes nothing. At most MaxBarriers fit.
//  4. If no event follows a barrier, the receiver sends it in an empty batch. It tries again until a pipeline has accepted
//     the batch, or refused it permanently.
//
// # Layout of a batch, version 1
//
// Integers are little endian. A batch is a header, rows, and tables:
//
//	offset size
//	0      16   stream ID
//	16     8    resolution of the source's clock, nanoseconds, 1 to 1e9
//	24     8    base time, Unix nanoseconds (signed)
//	32     8    base sequence
//	40     8    next: one more than the highest sequence number that the receiver has seen
//	48     8    received: Unix nanoseconds when the receiver closed the batch (signed)
//	56     4    number of events
//	60     4    number of barriers
//	64     4    number of attributes
//	68     4    number of functions
//	72     4    number of lanes
//	76     4    number of exceptions
//	80     4    number of values
//	84     4    length of the string section, bytes
//	88     4    length of the text key, bytes
//	92     4    number of renames
//	96          events, 20 bytes each
//	            barriers, 24 bytes each
//	            attributes, 12 bytes each
//	            functions, 20 bytes each
//	            lanes, 12 bytes each
//	            exceptions, 4 bytes each
//	            values, 12 bytes each
//	            renames, 36 bytes each
//	            strings
//
// An event is kind (u8), a byte that readers ignore and writers set to zero,
// lane (u16), function (u16), exception (u16; 0: none, otherwise index + 1; an enter from a
// caller has the caller's index in the table of functions),
// line (u32; 0: none), sequence (i32, from the base), time (i32, in units of
// the resolution, from the base time).
//
// A barrier is from (u64), to (u64), kind (u8), cause (u8), and six bytes that readers ignore and
// writers set to zero.
//
// An attribute is the index of its event, of its key and of its value in the
// value table (u32 each); attributes are sorted by event, and a key is a
// string value.
//
// A function is four string lengths (u32: qualified name, display name, text,
// file) and a line (u32). A lane is an ID (u64) and the length of its name
// (u32). An exception is the length of its name. A value is a type (u32) and
// eight bytes: the number, or for a string its length.
//
// A rename is a lane's ID (u64), which need not be in the table of lanes, a
// sequence number (u64), the time from which the name holds (Unix nanoseconds,
// signed), the length of the name (u32), its rank (u32), and 0 or 1 (u8) each for
// the lane's first name, provisional, and another thread that has the lane now, and
// a byte that is ignored by readers and written as zero. The sequence number is that
// of Rename.After if another thread has the lane. Otherwise it is written as
// MaxSequence, and provisional is always written as 0. Earlier writers of version 1
// wrote the first number under the name, with a time one unit of the resolution
// later. Readers use only the time, and ignore provisional.
//
// The string section is the text key, the attribute under which a span shows the
// text of its function, and the tables' and the renames' strings in the order of
// the sections, without separators.
package callevent
