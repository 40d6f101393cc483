// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard stands between Bytefrog agents and their collectors, so that a
// traced program survives its collector, and its trace goes on at the next.
//
// An agent that loses its HQ without a message hangs its program forever (package bytefrogagent describes when). The guard
// runs beside the program: to the agent it is an HQ that never goes away, to the collector it is the agent. It knows
// the meaning of messages as far as that requires. It pairs no calls and names no methods.
//
// # While all is well
//
// Data of the agent is passed on as soon as it was read, at the boundaries of messages, without
// a copy. A reader (agentdata.go) fills a chunk (chunk.go), walks over the messages in it
// (walk.go), and passes it to a writer (outlet.go). A reader never waits for a collector by
// itself, so the program feels a collector only as far as the options allow. The agent's
// configuration and all commands are the collector's. The guard remembers the facts that a later
// collector needs: names (names.go), the highest number (bytefrog.Numbering), the last heartbeat.
//
// # States
//
// The agent's side (package hq, session.go) and the collector's (link.go, keeper.go) meet in session.link. Each field
// has the action of the guard there, or the event that leads to another field.
//
//	agent \ collector   none or lost              saying hello, configured  streaming              held: stalled or new
//	connecting          tries all collectors;     waits for start, then     -                      -
//	                    none: refused             passes that and the
//	                                              configuration on
//	started, not ready  waits for the first data  waits likewise; what is   orders are kept until  -
//	                    connection                ordered before start      it is ready
//	                                              goes with the link
//	tracing             sent suspend              sent suspend              passes on; too much    sent suspend; data
//	                                                                        data waits: held       waits here
//	suspending          data is dropped until     waits for its answer      as the collector has   data waits here; the
//	                    it answers                before a run begins       ordered                break is passed on
//	suspended           tries, with back-off      the run begins: names,    as the collector has   when all was read:
//	                                              break; then it is held    ordered                sent unsuspend
//	ending              data is dropped           not begun                 passes on, closes      passes on waiting
//	                                                                        as the agent closes    data, closes
//	gone                the session ends          given up                  flushed, closed        flushed, closed, at
//	                                                                                               the latest when silent
//
// Events of the collector's side: a connection is refused, closed or reset; an error message; no
// answer in ConnectTimeout; waiting data of which nothing is read for Silence; more waiting data
// than Memory. Each of them is the loss of the link. Guard.Shutdown and GiveUp lead to the
// farewell (farewell.go) from any of the fields.
//
// A link that is lost before it has lived for a minute is a try that failed: the next begins
// after a pause that gets longer, and with the next collector of the list, and the time for
// GiveUp goes on.
//
// # The policy of waiting
//
// The guard passes a collector's back-pressure on within bounds. When Queue bytes wait for a
// connection, the agent's is not read, the agent's buffers fill, and its program runs as fast as
// the collector reads. That may last for MaxWaitPerSecond of each second, and for MaxWait on end
// where the collector reads no data at all, on any of its connections. Then 2 MiB more are read
// after that, and so on (room.go).
//
// A collector can stand still for a moment, as in a garbage collection, or be a little slower than
// the program. It slows the program for no longer than that, no call is lost, and the agent is not
// suspended. When the collector reads again, the agent is read at half of that speed, so that the
// waiting data goes down to Queue. A collector that shares its processor stands still for up to
// 100 ms again and again. MaxWait is as long by default, or each of these moments would bring the
// suspension nearer.
//
// When a quarter of Memory waits, the agent gets suspend. A busy machine can delay the answer, and
// the program is traced meanwhile. So the same bounds hold until the agent has answered: without
// them a fast program would fill Memory in some milliseconds, and the link would be lost. After its
// answer the agent sends only the data in its own buffers and the system's, which fits into the
// rest and is read without waiting. When the collector has read all
// waiting data, the agent resumes immediately. Only the calls in between are lost, and the agent's
// own data break reports that. A slow collector needs long for the waiting data, so suspensions
// are never closer than it can bear. A collector that reads nothing while no data waits is not
// noticed, and does no harm.
//
// # A new run
//
// A new collector, or the same after a restart, gets an agent that began long ago.
//
//   - Numbers. A run begins at 0 for its collector, which waits for missing numbers. So numbers
//     count from the one in the agent's data break on; with them the wrap-around moves. Messages
//     with a number before that, from a buffer that arrived late, are dropped: their neighbours
//     went to the old collector. The break is sent too, before 0.
//   - Times. For the new collector the agent's clock begins when it sends start. So the time
//     between the two starts is subtracted from each event's time, modulo 2^32 as agents count.
//     An earlier time, such as that of a thread's name, becomes a time before the run.
//   - Names. All remembered names are sent first, on the first data connection, and the agent
//     gets unsuspend when the collector has read them. Of a thread the last name is sent.
//   - Connections. The agent has as many data connections as its first collector configured. The
//     i-th goes to the i-th of the new one's, counted round; whole messages are passed, so
//     they can share one.
//   - Configuration. The agent's filters and buffers stay. Where the new
//     collector expects heartbeats more often than the agent sends them the guard repeats
//     the last one, as long as the agent itself lives.
//   - No answer. An agent that has not sent its data break 5 s after suspend gets unsuspend all
//     the same, and the run begins behind the highest number that arrived. The numbers from there
//     to the next one that arrives are a gap for the collector.
//
// # Messages that are not passed on
//
// An error message of a collector is the loss of the collector and not the end of the run: a
// collector that shuts down sends it, after it has suspended the agent and read the rest. Class
// reports that arrive while there is no collector are dropped and counted. They carry no time, so
// a later collector would take them for its own run's.
package guard
