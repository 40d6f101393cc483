// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package bytefrogagent plays the agent's side of the Bytefrog protocol as the real
// Java agent does: it dials, says hello, reads its configuration, waits for start,
// opens its data connections, sends heartbeats, obeys control messages, and sends
// what a Program makes through a bounded pool of buffers.
//
// It knows what happens to a traced program when its headquarters (HQ: whoever the
// agent connects to) behaves well or badly, and says so in the Result of a run.
// It makes no calls of its own: package replay plays a capture, package load
// generates calls.
//
// # When the HQ goes away
//
// The threads of a traced program take the buffers they write to from a pool, and
// wait when it is empty. Buffers come back when the agent's senders have sent them.
// What follows was measured on the real agent:
//
//   - Harmless, the program runs on untraced: suspend, then everything closed;
//     error (or a control byte the agent does not know), then everything closed;
//     stop, which makes the agent drain and close; data connections closed and the
//     control connection 0.3 s later; only the control connection closed, while the
//     data connections are read to their end.
//   - The program hangs for ever: the control connection is lost before or together
//     with the data connections, with none of these orders before. The senders are
//     gone and the threads wait for a buffer.
//   - The program hangs in front of its main: start never comes.
//
// What lies between was not measured. The agent here is the strict one: it hangs
// unless the order is one of the harmless ones. How long it takes data connections
// and control connection to count as lost together is Options.Settle.
package bytefrogagent
