// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package bytefrogagent simulates an agent of the Bytefrog protocol. Like the real Java agent, it dials, sends hello,
// reads its configuration, waits for start, opens its data connections, sends heartbeats, carries out control messages,
// and sends the events of a Program through a limited pool of buffers.
//
// The Result of a run has the fate of the traced program. It depends on the behaviour
// of the headquarters (HQ: the collector or guard that the agent connects to). The
// package makes no calls itself: package replay plays a capture, package load
// generates calls.
//
// # When the HQ disconnects
//
// The threads of a traced program write to buffers of a pool, and wait when the pool
// is empty. Buffers return to it when the agent's senders have sent them. The
// following cases were measured on the real agent.
//
// The program continues without a trace:
//
//   - suspend, the HQ reads all sent data, then it closes all connections;
//   - error (or a control byte the agent does not know): the agent sends error itself.
//     After a heartbeat interval it closes its data connections and then the control
//     connection, if the HQ reads until then;
//   - the same, and the HQ closes all connections a moment later;
//   - stop, which makes the agent drain and close;
//   - data connections closed and the control connection 0.3 s later;
//   - only the control connection closed, while the data connections are read to
//     their end.
//
// The program hangs forever:
//
//   - the control connection is lost before or together with the data connections,
//     without one of these orders before: the senders have ended and the threads wait
//     for a buffer;
//   - the same immediately after error, or while the process is stopped and has not
//     read it: the connection is lost while the agent sends its own error;
//   - the data connections are closed with unsent data, and the control connection
//     before the agent has sent its error: the program sometimes hangs at its end;
//   - the HQ sends error and does not read the data: the program hangs at its end.
//
// The program does not reach its main function: error, or the end of the connection,
// before start ends it. Without start it waits forever. It also waits forever after
// stop before start, and when error arrives together with start. An HQ that refuses an
// agent starts it with a configuration that traces nothing, and sends error when it
// runs.
//
// An agent that shuts down treats suspend as an error, and discards its unsent data.
//
// Other orders were not measured, or depend on the load of the machine. In these cases the simulated agent hangs.
// Events within Options.Settle count as simultaneous.
package bytefrogagent
