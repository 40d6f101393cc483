// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package merge puts the events of all streams of one CTF trace in order of time, while they arrive.
//
// It knows CTF packets and time, and no connections. The caller passes packets, promises that a stream sends nothing
// older, and ends of streams. It receives events and losses from Merger.Next. The package starts no goroutine, and
// its only clock is Merger.Advance.
//
//	Stream.Packet ──► packets that wait ──► ctf.Reader ──► head ──┐
//	Stream.Packet ──► packets that wait ──► ctf.Reader ──► head ──┼──► Merger.Next
//	Stream.Promise ──────────────────────────► key ───────────────┘
//
// # Order
//
// The head of a stream is its oldest event or end of a loss that Next has not returned. A stream with no waiting
// input has a promise instead: all further input will be at least as new. A heap orders the streams by the time of
// head or promise, then by class and instance, and then by the order of AddStream. If the first stream has a head, Next
// returns it. If it has only a promise, all streams wait for it, because its next input may be older than all other
// heads.
//
// # Delay
//
// Streams wait at most Options.MaxDelay for a stream that sends nothing. Then it is overtaken: the others continue
// without it. Its later input that is older than the newest returned event is returned immediately and marked late,
// until the stream has caught up. In that interval the order is not known, so a loss of cause Overtaken is open. If
// the caller has no memory for a stream's next packet, Stream.PassBy does the same immediately, with cause NoRoom.
//
// # Losses
//
// Missing data is an interval with a place in the order: Merger.Next returns LossBegin at its begin and LossEnd at
// its end. A caller that pairs calls must not trust any stack in this interval: threads move between the streams of a
// trace, so a loss in one stream affects all. Between the events of a thread before and after a missing one, there is at
// least a part of a loss.
//
//   - Discarded events: the tracer's buffers were full. It counts the events up to the end of each packet,
//     without times. A tracer that fills buffers discards events that do not fit into the last free buffer.
//     So they lie after the first event of the packet after which less room was left than the largest event
//     needs. The loss begins there. If the packet had room for all events, the reason was another one, and
//     the loss begins at the end of the previous packet.
//   - End of that loss: a thread reads the clock, and then reserves room. If it loses its processor in
//     between, and other threads only discard events, it gets room with its old time, as the first event of
//     the next packet. So the loss ends with the second event of the next packet. If that does not begin at
//     the end of this one, the loss ends with its begin.
//   - Late counts: a thread can lose its processor before it counts the event that it discarded. Then the next
//     packet counts it. For these there is a loss of unknown count from the end of the previous packet to the
//     second event of this one. The event itself may be older. The thread records nothing until it has counted
//     the event, so its stack ends between its events before and after the missing one.
//   - Hidden counts: before version 2.14, the tracer's thread that writes the last part of a packet also writes the
//     count, as it was before the thread reserved room, or 0. If the thread had to wait in between, a later packet has
//     the real count, and no loss is reported for this one.
//   - Lost packets: a jump of the packets' sequence number, from the end of the previous packet to the begin
//     of this one.
//   - Stopped tracing: an event in a process reports that tracing resumes, but some threads of the process
//     may record events before it. When tracing stops, the tracer empties all buffers, so the next packet
//     does not begin where the previous one ended. If such an event is soon after the packet's begin
//     (Options.Resumes), the loss lasts from the end of the previous packet to this event. A buffer that is
//     empty at the stop becomes an empty packet (Options.Stops). Then the loss is at its end and has no
//     length, because nothing is recorded until tracing resumes.
//   - A counter of discarded events below its maximum is a loss with a count of 0.
//   - Losses that the caller reports with Stream.MarkLoss.
//
// # Memory
//
// Packets are not copied. They belong to the Merger until Next returns PacketEnd. Stream.Wanted reports when the
// caller should stop adding packets to a stream that is ahead of others. It is no bound: if all streams have input, a
// packet of each waits. A caller that bounds memory first makes room for streams that are Awaited, and passes by
// those without room. Then the waiting packets can be read.
package merge
