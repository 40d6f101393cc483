// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay replays a capture of a Bytefrog agent, as the program of package bytefrogagent.
//
// It divides the data connections of the capture into messages, fills buffers of the agent's size (with whole messages,
// in the order of each connection) and sends them in the order of arrival. So as many events are out of order as in the
// capture. The agent decides which data connection sends a buffer. The captured agent's control messages keep their
// position, and a data break always precedes its later events. The new agent sends its own hello and heartbeats.
//
// # Suspension
//
// A suspended agent stops collecting, and its program runs on: the calls in between are unseen and have no numbers.
// When the HQ suspends a replay, the replay reports a data break before the first number that it has not sent. It then
// sends the events before that number, like the real agent sends its buffers. The rest depends on whether the replay
// has a clock:
//
//   - With a speed, the program runs on: the calls whose time passes before unsuspend are omitted, and
//     all later numbers are lowered so that there is no gap, as if the capture had been suspended
//     then. Names in the omitted part are sent nevertheless.
//   - At full speed no clock shows which calls would have been made. The program stands still, and no
//     call is omitted. The data break is then more cautious than necessary.
//
// # Repetition
//
// A repeated capture continues its numbers and times; IDs of methods, exceptions and threads stay the same. A data
// break separates two rounds, so that frames that the capture left open do not become parents in the next round. If the
// times are more than 10 s ahead of the clock, because the replay is faster than the capture, later rounds have
// compressed times.
package replay
