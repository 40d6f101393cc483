// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay plays a capture of a Bytefrog agent again, as the program of
// package bytefrogagent.
//
// The messages of the capture's data connections are taken apart, put into buffers of
// the agent's size (whole messages, each connection's order kept) and handed to the
// agent in the order in which they arrived, so that as much is out of order as was.
// Which data connection carries a buffer is the agent's affair. What the captured agent
// said on its control connection stands at its place, and a data break always before
// the events that follow it. Hello and heartbeats are the new agent's own.
//
// # Suspension
//
// An agent that is suspended stops collecting, and its program runs on: the calls in
// between are not seen and use no numbers. When the HQ suspends a replay it says its
// data break before the first number that it has not handed over yet, and goes on to
// send what stands before that number, as the real agent sends what it has in buffers.
// Then it depends on whether the replay has a clock:
//
//   - With a speed, the program runs on: the calls whose time passes before unsuspend
//     are left out, and the numbers of all later ones are lowered so that there is no
//     gap, exactly as if the capture had been suspended then. Names given in the part
//     that is left out are sent nevertheless.
//   - At full speed there is no clock that could say which calls would have been made.
//     The program stands still, and no call is left out. The data break is then more
//     careful than it needs to be.
//
// # Repetition
//
// A repeated capture goes on with its numbers and times; IDs of methods, exceptions and
// threads are the same. A data break stands between two rounds, so that frames the
// capture left open do not become parents of the next round. If the times run more than
// 10 s ahead of the clock, because the replay is faster than the capture was, later
// rounds have their times compressed to the speed of the replay.
package replay
