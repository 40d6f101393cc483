// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard stands between Bytefrog agents and their collectors, so that a
// traced program survives its collector, and its trace goes on at the next.
//
// An agent that loses its HQ without a word hangs its program for ever (package
// bytefrogagent says when). The guard runs beside the program: to the agent it is an HQ
// that never goes away, to the collector it is the agent. It knows what the messages of the
// protocol mean to each other as far as that needs; it pairs nothing and names nothing.
//
// # While all is well
//
// What comes on a connection of the agent is passed on as soon as it was read, at the
// boundaries of messages, without a copy: who reads fills a chunk (chunk.go), walks over
// the messages in it (walk.go), and gives it to who writes (outlet.go). Nobody who reads
// from an agent ever writes to a collector, so what a collector does is not felt in the
// program but as far as is wanted. The agent's configuration, and all orders, are the
// collector's. What a later collector will have to know is remembered: names (names.go),
// the highest number (numbering.go), the last heartbeat.
//
// # States
//
// The agent's side (package hq, session.go) and the collector's (link.go, keeper.go) meet
// in session.link. Each field says what the guard does there; where it says what happens,
// that leads to another field.
//
//	agent \ collector   none or lost              saying hello, configured  streaming              held: stalled or new
//	connecting          tries all collectors;     waits for start, then     -                      -
//	                    none: turned away         passes that and the
//	                                              configuration on
//	started, not ready  waits for the first data  waits likewise; what is   orders are kept until  -
//	                    connection                ordered before start      it is ready
//	                                              goes with the link
//	tracing             told to suspend at once   told to suspend           passes on; too much    told to suspend; all
//	                                                                        waits: held            that comes waits here
//	suspending          what comes is dropped,    waits for its answer      as the collector has   all that comes waits;
//	                    its answer is awaited     before a run begins       ordered                the break is passed on
//	suspended           tries, with back-off      the run begins: names,    as the collector has   all taken: told to go
//	                                              break; then it is held    ordered                on
//	ending              what comes is dropped     not begun                 passes on, closes      passes on what waits,
//	                                                                        as the agent closes    closes
//	gone                the session ends          given up                  flushed, closed        flushed, closed, at
//	                                                                                               the latest when silent
//
// What moves the collector's side: a connection is refused, closed or reset; error; an
// answer that doesn't come in ConnectTimeout; nothing taken of what waits for Silence;
// more waiting than Memory. All of these are the loss of the link. Guard.Shutdown and
// GiveUp leave the agent (leave.go) from any of the fields.
//
// A link that is lost before it has lived for a minute is a try that failed: the next begins
// after a pause that gets longer, and with the next collector of the list, and the time for
// GiveUp goes on.
//
// # The policy of waiting
//
// Back-pressure of a collector is passed on within bounds: when Queue bytes wait for a
// connection the agent's is not read, its buffers fill, and its program goes as fast as the
// collector takes. That may be so for MaxWaitPerSecond of each second, and for MaxWait on
// end where the collector takes no data at all, on any of its connections. Then 2 MiB more
// are read all the same, and so on (room.go).
//
// So a collector that stands for a moment, as in a collection of garbage or because its own
// exporter does, and one that is a little slower than the program, slow it but are not felt
// for longer than that; what happens meanwhile is not lost, and nobody is suspended. When
// the collector takes again, the agent is read at half of that speed, so that what waits goes
// down to Queue. A collector whose processor time is limited, or that shares its machine with
// others, stands still for up to 100 ms again and again: MaxWait is as long by default, or each
// of these moments would bring the suspension nearer.
//
// When a quarter of Memory waits, the agent is told to suspend. From then on it has no
// more than what it had collected, which is bounded by its own buffers and the system's, so
// it fits into the rest. When the collector has taken all, the agent goes on at once: nothing
// was lost but what happened meanwhile, and that is the agent's own data break. A collector that
// is slow takes long for that, so suspensions don't follow each other more closely than it can
// bear. One that takes nothing while nothing is to be taken is
// not noticed, and does no harm.
//
// # A new run
//
// A new collector, or the same after a restart, is told of an agent that began long ago.
//
//   - Numbers. A run begins at 0 for whoever receives it: what is above has been lost, and
//     is waited for. So numbers are counted from the one that the agent named in its data
//     break on; with them the wrap-around moves. What has a number before that, out of a
//     buffer that came late, is dropped: its neighbours went to the old collector. The
//     break is told too, before 0.
//   - Times. The new collector takes for the agent's zero the moment in which it said
//     start. So the time between the two starts is taken off each event's time, modulo
//     2^32 as agents count. What was before, as the time from which a thread has its name,
//     becomes a time before the run.
//   - Names. All that are remembered are sent first, on the first data connection, and
//     the agent is told to go on when they were taken. Of a thread the last name is sent.
//   - Connections. The agent has as many data connections as its first collector said. The
//     i-th goes to the i-th of the new one's, counted round; whole messages are passed, so
//     they can share one.
//   - Configuration. What else the agent was told stays: filters, buffers. Where the new
//     collector expects heartbeats more often than the agent sends them the guard repeats
//     the last one, as long as the agent itself lives.
//   - No answer. An agent that has not said its data break 5 s after suspend is told to
//     go on all the same, and the run begins behind the highest number that came: what is
//     between that and the first that comes is a gap to who receives it.
//
// # What is not passed on
//
// error of a collector is the loss of the collector and not the end of the run: a
// collector that shuts down says it, having told the agent to suspend and read what it
// had. What an agent says of classes while there is no collector is dropped, and counted:
// nothing in it says when it was, and a later collector would take it for what happens then.
package guard
