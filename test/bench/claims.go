// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

// suite is a set of benchmarks of one package.
type suite struct {
	pkg, pattern, time string
	// cores is how many cores it may use; 0: all.
	cores int
	// rounds is in how many rounds it is run at most; 0: in all.
	rounds int
}

var suites = []suite{
	{pkg: "./internal/bytefrog", pattern: "^BenchmarkDecodeEvents$", time: "0.5s"},
	{pkg: "./internal/bytefrogguard", pattern: "^Benchmark(Pass|Walk|Latency)$", time: "1s"},
	{pkg: "./internal/callevent", pattern: "^BenchmarkPackUnpack$", time: "0.5s"},
	{pkg: "./receiver/bytefrogreceiver", pattern: "^Benchmark(BytesToBatches|BytesToSpans|BuildSpans|BytesToNothing)$", time: "1s"},
	{pkg: "./test", pattern: "^BenchmarkReplay(WithLazyCollection)?$", time: "1x", rounds: 1}, // it repeats by itself
	{pkg: "./test", pattern: "^BenchmarkBehindAGuard$", time: "1x", rounds: 3},
	{pkg: "./test", pattern: "^Benchmark(OneCollector|Tiers|SmallBatches|ShortStreams)$", time: "1x", rounds: 1},
	{pkg: "./test", pattern: "^BenchmarkListAgents$", time: "1x", rounds: 3},
	{pkg: "./test", pattern: "^BenchmarkLargeRbkitMessage$", time: "1x", rounds: 3},
	{pkg: "./internal/rbkit", pattern: "^BenchmarkDecode$", time: "0.5s"},
	{pkg: "./internal/greys/gp", pattern: "^BenchmarkDecodeGP$", time: "0.5s"},
	{pkg: "./internal/greys/console", pattern: "^BenchmarkDecodeConsole$", time: "0.5s"},
	{pkg: "./internal/zmtp", pattern: "^BenchmarkReceive$", time: "1x"},
	{pkg: "./receiver/lttnglivereceiver", pattern: "^BenchmarkReadLTTng$", time: "1x", cores: 1, rounds: 3},
	{pkg: "./receiver/rbkitreceiver", pattern: "^BenchmarkMessagesToPdata$", time: "1s"},
	{pkg: "./receiver/greysreceiver", pattern: "^Benchmark(RowsToMetrics|TreesToSpans)$", time: "1s"},
	{pkg: "./exporter/flamegraphexporter", pattern: "^BenchmarkFoldTraces$", time: "1s"},
	{pkg: "./exporter/flamegraphexporter", pattern: "^Benchmark(FoldMemory|PathMemory)$", time: "1x", rounds: 1},
	{pkg: "./exporter/flamegraphexporter/internal/web", pattern: "^BenchmarkPages$", time: "1s"},
}

// Units of the benchmarks.
const (
	cpuPerEvent     = "cpu-ns/event"
	perMessage      = "ns/message"
	megabytesPerCPU = "MB/cpu-s"
	eventsPerCPU    = "Mevents/cpu-s"
	peak, peakAtTen = "peak-MiB", "peak-MiB-at-10x"
	allocations     = "allocs/op"
	listed          = "listed-s"
	bytesPerPath    = "B/path"
	timesAt50M      = "times-at-50M"
	perPage         = "cpu-ms/page"
	receivePerEvent = "receive-cpu-ns/event"
	pairPerEvent    = "pair-cpu-ns/event"
	longestWait     = "longest-wait-ms"
	medianLatency   = "median-us"
	mallocsPerEvent = "mallocs/event"
	idlerWait       = "idler-ms"
)

// claim is a line of the table.
type claim struct {
	what string
	// bound is what value has to reach: at least, or with atMost at most. 0: nothing is
	// claimed, the value is there to judge the machine by.
	bound  float64
	atMost bool
	unit   string
	// value is of one benchmark's median, or a ratio of two.
	benchmark, metric string
	over, overMetric  string
	// peer is the program that benchmark runs, or, with its whole path, a file that it is
	// made with; empty: none. It is compared with where it is there, the program in PATH,
	// and remedy says how it gets there.
	peer, remedy string
}

// timesBabeltrace claims that what a benchmark of reading does takes so many times less
// than what babeltrace2 does, with the same trace.
func timesBabeltrace(what string, bound float64, trace, ours, theirs string) claim {
	const name = "BenchmarkReadLTTng/"
	return claim{
		what: what, bound: bound, unit: "times as many events",
		benchmark: name + trace + "/" + theirs, metric: cpuPerEvent, over: name + trace + "/" + ours, overMetric: cpuPerEvent,
		peer: "babeltrace2", remedy: "apt-get install babeltrace2 (Debian)",
	}
}

// timesLibzmq claims that messages of a size are received so many times as fast as libzmq
// does, from the same publisher.
func timesLibzmq(what, size string) claim {
	const name = "BenchmarkReceive/"
	return claim{
		what: what, bound: 1, unit: "times as many messages a second",
		benchmark: name + size + "/libzmq", metric: perMessage, over: name + size + "/callbraid", overMetric: perMessage,
		peer: "/usr/include/zmq.h", remedy: "apt-get install gcc libc6-dev libzmq3-dev (Debian)",
	}
}

// page claims that one of the pages of flame graphs takes no longer.
func page(what, benchmark string) claim {
	return claim{what: "  its " + what, bound: 200, atMost: true, unit: "ms of CPU time", benchmark: "BenchmarkPages/" + benchmark, metric: perPage}
}

var claims = []claim{
	{what: "decode Bytefrog messages", bound: 60, unit: "M events per CPU-second", benchmark: "BenchmarkDecodeEvents", metric: eventsPerCPU},
	{what: "  allocations per event, the names' included", bound: 0.01, atMost: true, unit: "per event", benchmark: "BenchmarkDecodeEvents", metric: allocationsPerEvent},
	{what: "pack and unpack a batch", bound: 10, atMost: true, unit: "ns per event", benchmark: "BenchmarkPackUnpack", metric: cpuPerEvent},
	{what: "  allocations per event, the tables' included", bound: 0.01, atMost: true, unit: "per event", benchmark: "BenchmarkPackUnpack", metric: allocationsPerEvent},
	{what: "bytes to spans, against only building those spans", bound: 1.5, atMost: true, unit: "times", benchmark: "BenchmarkBytesToSpans", metric: cpuPerEvent, over: "BenchmarkBuildSpans", overMetric: cpuPerEvent},
	{what: "  only building those spans: what the library makes of this machine", unit: "M events per CPU-second", benchmark: "BenchmarkBuildSpans", metric: eventsPerCPU},
	{what: "bytes to spans, min_duration leaving out all", bound: 20, unit: "M events per CPU-second", benchmark: "BenchmarkBytesToNothing", metric: eventsPerCPU},
	{what: "the distribution, over loopback, nop exporter", bound: 4, unit: "M events per CPU-second", benchmark: "BenchmarkReplay", metric: eventsPerCPU},
	{what: "  the same with GOGC=200 in its environment", bound: 4, unit: "M events per CPU-second", benchmark: "BenchmarkReplayWithLazyCollection", metric: eventsPerCPU},
	{what: "  peak memory at 10 times the events", bound: 1.2, atMost: true, unit: "times", benchmark: "BenchmarkReplay", metric: peakAtTen, over: "BenchmarkReplay", overMetric: peak},
	{what: "one collector for Jaeger and Prometheus, as it is shipped", unit: "ns of its time an event", benchmark: "BenchmarkOneCollector", metric: cpuPerEvent},
	{what: "  two tiers: the collector that receives", unit: "ns of its time an event", benchmark: "BenchmarkTiers/1_pairing", metric: receivePerEvent},
	{what: "  the one that pairs", unit: "ns of its time an event", benchmark: "BenchmarkTiers/1_pairing", metric: pairPerEvent},
	{what: "  two that pair, against one", unit: "times", benchmark: "BenchmarkTiers/2_pairing", metric: pairPerEvent, over: "BenchmarkTiers/1_pairing", overMetric: pairPerEvent},
	{what: "  three that pair, against one", bound: 1.5, atMost: true, unit: "times", benchmark: "BenchmarkTiers/3_pairing", metric: pairPerEvent, over: "BenchmarkTiers/1_pairing", overMetric: pairPerEvent},
	{what: "  a batch without events: the collector that receives", unit: "µs of its time", benchmark: "BenchmarkSmallBatches", metric: "receive-cpu-µs/batch"},
	{what: "  the one that pairs", unit: "µs of its time", benchmark: "BenchmarkSmallBatches", metric: "pair-cpu-µs/batch"},
	{what: "  an agent that comes and goes: the collector that receives", unit: "µs of its time", benchmark: "BenchmarkShortStreams", metric: "receive-cpu-µs/stream"},
	{what: "  the one that pairs", unit: "µs of its time", benchmark: "BenchmarkShortStreams", metric: "pair-cpu-µs/stream"},
	{what: "bytefrog-guard: pass an event on", bound: 15, atMost: true, unit: "ns of CPU time", benchmark: "BenchmarkPass/guard", metric: cpuPerEvent},
	{what: "  against only reading and writing it", unit: "times", benchmark: "BenchmarkPass/guard", metric: cpuPerEvent, over: "BenchmarkPass/copy", overMetric: cpuPerEvent},
	{what: "  allocations per event, those of the start included", bound: 0.001, atMost: true, unit: "per event", benchmark: "BenchmarkPass/guard", metric: mallocsPerEvent},
	{what: "  the guard's walk over messages when a collector was lost, against before that", bound: 3, atMost: true, unit: "times", benchmark: "BenchmarkWalk/later", metric: cpuPerEvent, over: "BenchmarkWalk/first", overMetric: cpuPerEvent},
	{what: "  the guard's allocations per event there", bound: 0.001, atMost: true, unit: "per event", benchmark: "BenchmarkWalk/later", metric: allocationsPerEvent},
	{what: "  a message's way to the collector, in the middle", bound: 1000, atMost: true, unit: "µs", benchmark: "BenchmarkLatency/guard", metric: medianLatency},
	{what: "  the same without a guard", unit: "µs", benchmark: "BenchmarkLatency/direct", metric: medianLatency},
	{what: "  longest wait of a program whose collector is stopped", bound: 100, atMost: true, unit: "ms", benchmark: "BenchmarkBehindAGuard/stopped", metric: longestWait},
	{what: "  the same, killed and started again", bound: 100, atMost: true, unit: "ms", benchmark: "BenchmarkBehindAGuard/killed", metric: longestWait},
	{what: "  one that only sleeps wakes up late by: what the machine makes of this", unit: "ms", benchmark: "BenchmarkBehindAGuard/killed", metric: idlerWait},
	timesBabeltrace("LTTng: every field of every event, against babeltrace2 -o dummy", 5, "contexts", "fields", "babeltrace2Dummy"),
	timesBabeltrace("  without contexts", 5, "bare", "fields", "babeltrace2Dummy"),
	{what: "  allocations per event, those of the start included", bound: 0.01, atMost: true, unit: "per event", benchmark: "BenchmarkReadLTTng/contexts/fields", metric: allocationsPerEvent},
	timesBabeltrace("LTTng: log records of all events, against babeltrace2 writing text", 3, "contexts", "logRecords", "babeltrace2Text"),
	timesBabeltrace("  without contexts", 3, "bare", "logRecords", "babeltrace2Text"),
	timesBabeltrace("LTTng: batches and paired spans, against babeltrace2 -o dummy", 1, "contexts", "spans", "babeltrace2Dummy"),
	{what: "LTTng agents: 1,000 with 500 loggers each, listed by the distribution", bound: 5, atMost: true, unit: "s", benchmark: "BenchmarkListAgents", metric: listed},
	{what: "Rbkit: decode captured object events", bound: 600, unit: "MB of messages per CPU-second", benchmark: "BenchmarkDecode/objects", metric: megabytesPerCPU},
	{what: "Rbkit: decode captured object space dumps", bound: 600, unit: "MB of messages per CPU-second", benchmark: "BenchmarkDecode/dumps", metric: megabytesPerCPU},
	{what: "  allocations per event", bound: 0.001, atMost: true, unit: "per event", benchmark: "BenchmarkDecode/dumps", metric: allocationsPerEvent},
	{what: "  messages to pdata, released dialect", bound: 100, unit: "MB of messages per CPU-second", benchmark: "BenchmarkMessagesToPdata/released-30s", metric: megabytesPerCPU},
	{what: "  messages to pdata, documented dialect", bound: 100, unit: "MB of messages per CPU-second", benchmark: "BenchmarkMessagesToPdata/documented-30s", metric: megabytesPerCPU},
	{what: "  a message of 415,000 events of objects that live on, above idle", bound: 64, atMost: true, unit: "MiB at peak", benchmark: "BenchmarkLargeRbkitMessage/live", metric: peak},
	{what: "  the same of objects that are created and destroyed", bound: 64, atMost: true, unit: "MiB at peak", benchmark: "BenchmarkLargeRbkitMessage/gone", metric: peak},
	{what: "Greys, binary protocol: decode cycles of 500 methods", bound: 100, unit: "MB of replies per CPU-second", benchmark: "BenchmarkDecodeGP/monitor", metric: megabytesPerCPU},
	{what: "  allocations per method", bound: 0.01, atMost: true, unit: "per method", benchmark: "BenchmarkDecodeGP/monitor", metric: allocationsPerEvent},
	{what: "  decode recorded calls", bound: 100, unit: "MB of replies per CPU-second", benchmark: "BenchmarkDecodeGP/records", metric: megabytesPerCPU},
	{what: "  decode stacks", bound: 100, unit: "MB of replies per CPU-second", benchmark: "BenchmarkDecodeGP/stack", metric: megabytesPerCPU},
	{what: "Greys console: decode tables of monitors", bound: 100, unit: "MB of text per CPU-second", benchmark: "BenchmarkDecodeConsole/tables", metric: megabytesPerCPU},
	{what: "  trees of calls", bound: 100, unit: "MB of text per CPU-second", benchmark: "BenchmarkDecodeConsole/trees", metric: megabytesPerCPU},
	{what: "  stacks", bound: 100, unit: "MB of text per CPU-second", benchmark: "BenchmarkDecodeConsole/stacks", metric: megabytesPerCPU},
	{what: "  recorded calls", bound: 100, unit: "MB of text per CPU-second", benchmark: "BenchmarkDecodeConsole/records", metric: megabytesPerCPU},
	{what: "  methods", bound: 100, unit: "MB of text per CPU-second", benchmark: "BenchmarkDecodeConsole/methods", metric: megabytesPerCPU},
	{what: "Greys: rows of 500 methods to metrics, collected after each cycle", bound: 0.05, unit: "M rows per CPU-second", benchmark: "BenchmarkRowsToMetrics/500", metric: eventsPerCPU},
	{what: "  call trees to spans", bound: 0.2, unit: "M spans per CPU-second", benchmark: "BenchmarkTreesToSpans", metric: eventsPerCPU},
	timesLibzmq("ZMTP: messages of 1 KiB over loopback, against libzmq in C", "1KiB"),
	timesLibzmq("ZMTP: messages of 100 KiB", "100KiB"),
	{what: "flame graph: fold spans, callees first", bound: 2, unit: "M spans per CPU-second", benchmark: "BenchmarkFoldTraces/callees_first", metric: eventsPerCPU},
	{what: "  callers first", bound: 2, unit: "M spans per CPU-second", benchmark: "BenchmarkFoldTraces/callers_first", metric: eventsPerCPU},
	{what: "  memory of a call path, with what is remembered of its span", bound: 1024, atMost: true, unit: "bytes", benchmark: "BenchmarkPathMemory", metric: bytesPerPath},
	{what: "  memory after 50 million spans of the same paths, against the first million", bound: 1.05, atMost: true, unit: "times", benchmark: "BenchmarkFoldMemory", metric: timesAt50M},
	page("start page", "start"),
	page("page of a service with 100,000 call paths", "service"),
	page("pprof's flame graph of it", "flamegraph"),
	page("pprof's top", "top"),
	page("top of 50 functions", "top_50"),
	page("top without a function, which is hidden", "top_without_a_function"),
	page("pprof's peek at a function", "peek"),
	page("download for pprof", "pprof"),
	page("download of folded stacks", "folded"),
	page("download for speedscope", "speedscope"),
}
