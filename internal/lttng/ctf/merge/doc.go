// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package merge puts the events of all streams of one CTF trace in order of time, as
// they come.
//
// It knows CTF packets and time, and no connections: whoever reads the trace gives it
// packets, promises that a stream has nothing older, and ends, and takes events and
// losses out. It starts nothing and looks at no clock but the one it is told.
//
//	Stream.Packet ──► packets that wait ──► ctf.Reader ──► head ──┐
//	Stream.Packet ──► packets that wait ──► ctf.Reader ──► head ──┼──► Merger.Next
//	Stream.Promise ──────────────────────────► key ───────────────┘
//
// # Order
//
// Each stream has a head, the oldest thing of it that was not given out, or, where
// nothing waits, a promise that whatever comes will be no older. The streams stand in
// a heap by the time of the one or the other, and then by the order in which they were
// added. If the first of them has a head, it is given out. If it has only a promise,
// everything waits for it: what it has to say may be older than all other heads.
//
// # Delay
//
// A stream that others wait for and that says nothing for Options.MaxDelay is
// overtaken: the others go on without it. What comes of it afterwards, and is older
// than what was given out already, is given out at once and marked late, until the
// stream has caught up. Between the two the order isn't known: a loss of cause
// Overtaken is open. So it goes, at once and with cause NoRoom, with a stream whose next
// packet the caller has no room for: see Stream.PassBy.
//
// # Losses
//
// What is missing is told as an interval, in its place in the order: Merger.Next
// returns LossBegin where it begins and LossEnd where it ends. Whoever follows calls
// must not believe any stack from the one to the other: threads move between the
// streams of a trace, so a loss in one is a loss for all.
//
//   - Discarded events: the tracer had no room. It counts them up to the end of each
//     packet, and does not say when they happened. A tracer that fills buffers discards
//     events that no longer fit into the last one that is free. So they lie behind the
//     first event of the packet after which there was less room than some event took;
//     the loss goes from there to the end of the packet. Where the packet had room for
//     all events, they were discarded for another reason, and the loss goes from the end
//     of the packet before. What is counted with a
//     packet may lie before its first event, too: a loss of unknown count goes there
//     from the end of the packet before.
//   - Lost packets: a jump of the packets' sequence number, from the end of the packet
//     before to the begin of this one.
//   - Tracing that was stopped: a process that is traced again says so, but some of its
//     threads may have been faster. When tracing stops all buffers are emptied, so a
//     packet does not follow the one before at once; where it has such word soon after
//     its begin (Options.Resumes), the loss goes from the end of the packet before to it.
//     A buffer that is empty then becomes an empty packet (Options.Stops): the loss is at
//     its end, and has no length, since nothing is recorded until tracing goes on.
//   - A counter of discarded events below the highest one is a loss with a count of 0.
//   - What the caller says: Stream.Lose.
//
// # Memory
//
// Packets are not copied. They belong to the Merger until Next returns PacketEnd, which
// gives them back. Stream.Wanted says when to stop giving packets of a stream that is
// ahead of others. It is no bound: where all streams have something, a packet of each
// waits. A caller that bounds what waits gives room to streams that are Awaited first,
// and passes those by for which there is none: then what waits goes on.
package merge
