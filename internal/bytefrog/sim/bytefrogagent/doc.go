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
// What follows was measured on the real agent.
//
// The program runs on, untraced:
//
//   - suspend, all that was sent is read, then everything closed;
//   - error (or a control byte the agent does not know): the agent says so itself,
//     and when a heartbeat interval has passed it closes its data connections and then
//     the control connection, if the HQ reads till then;
//   - the same, and everything closed by the HQ a moment later;
//   - stop, which makes the agent drain and close;
//   - data connections closed and the control connection 0.3 s later;
//   - only the control connection closed, while the data connections are read to
//     their end.
//
// The program hangs for ever:
//
//   - the control connection is lost before or together with the data connections,
//     with none of these orders before: the senders are gone and the threads wait for
//     a buffer;
//   - the same at once after error, or while the process is stopped and has not read
//     it: the agent is lost while it says why;
//   - the data connections are closed with something unsent, and the control
//     connection before the agent has come to say so: the program hangs at its end,
//     now and then;
//   - the HQ sends error and doesn't read what is being sent: at the program's end.
//
// The program does not come to its main: error, or the end of the connection, in
// front of start ends it; without start it waits for ever; so it does after stop in
// front of start, and when error comes together with start. An HQ that wants no agent
// starts it with a configuration that traces nothing, and sends error when it runs.
//
// To an agent that is shutting down suspend is an error, for which it throws away what
// it has not sent.
//
// What lies between was not measured, or varies with how busy the machine is. The
// agent here is the strict one: it hangs unless the order is one of the harmless ones.
// How long it takes what happens to count as happening together is Options.Settle.
package bytefrogagent
