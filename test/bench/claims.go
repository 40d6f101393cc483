// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "os"

// Units of the benchmarks.
const (
	cpuPerEvent  = "cpu-ns/event"
	perMessage   = "ns/message"
	perPage      = "cpu-ms/page"
	perPicture   = "ms/picture"
	perCall      = "ns/call"
	eventsPerCPU = "Mevents/cpu-s"
	allocations  = "allocs/op"
	peak         = "peak-MiB"
	perInterval  = "cpu-ms/interval"
	blocked      = "cpu-ms-blocked"
)

// measured is a figure that a benchmark reports.
type measured struct {
	pkg, benchmark, metric string
}

// claim is a line of the table: a cost as a ratio to a yardstick of the same run, so that it holds
// on any machine. Claims about memory are no ratios, because memory does not depend on the machine.
// A few claims are processor time, because their work has no yardstick.
type claim struct {
	what string
	// against describes the yardstick; empty: there is none.
	against string
	// bound is the bound of the ratio: at most, or with atLeast at least. 0: no claim, the figure
	// describes the machine.
	bound   float64
	atLeast bool
	// of is divided by over, if that is not zero.
	of, over measured
	// base is a cost that is no part of the claim; zero: none. Its least figure of all rounds is subtracted from of.
	base measured
	// isTime: the claim is processor time. The round with the least time counts, because other work on the machine
	// only adds time.
	isTime bool
	// unit is that of the claim where it is no ratio.
	unit string
	// peer is the program of the yardstick, or, with its whole path, a file for it; empty: none.
	// Without the program in PATH, or without the file, the line is skipped, and remedy describes
	// how to get it.
	peer, remedy string
	// variable is an environment variable that names the yardstick's file, and remedy describes its value; empty: none. Without
	// the variable the line is left out and not missed, because not everybody can get the file.
	variable string
}

// isLeftOut reports whether a claim can be measured only with a file that the environment does not name.
func (c claim) isLeftOut() bool { return c.variable != "" && os.Getenv(c.variable) == "" }

// at is a benchmark of a package. Its metric is processor time for an event.
func at(pkg, benchmark string) measured {
	return measured{pkg: pkg, benchmark: "Benchmark" + benchmark, metric: cpuPerEvent}
}

func (m measured) in(metric string) measured { m.metric = metric; return m }

// atMost claims that of costs at most so many times as much as over.
func atMost(bound float64, what, against string, of, over measured) claim {
	return claim{what: what, against: against, bound: bound, of: of, over: over}
}

// below claims that a figure which does not depend on the machine is at most the bound.
func below(bound float64, what, unit string, of measured) claim {
	return claim{what: what, bound: bound, of: of, unit: unit}
}

// within claims that work takes at most so much processor time.
func within(bound float64, what, unit string, of measured) claim {
	return claim{what: what, bound: bound, of: of, unit: unit, isTime: true}
}

// inBrowser claims that a browser takes at most so much time.
func inBrowser(bound float64, what, unit string, of measured) claim {
	c := within(bound, what, unit, of)
	c.peer, c.remedy = "chromium", "apt-get install chromium (Debian)"
	return c
}

// adds claims that work adds at most so much processor time to other work.
func adds(bound float64, what, unit string, of, to measured) claim {
	return claim{what: what, bound: bound, of: of, base: to, unit: unit, isTime: true}
}

// figure claims nothing: it describes the machine.
func figure(what, unit string, of measured) claim { return claim{what: what, of: of, unit: unit} }

// Packages that are measured.
const (
	bytefrog     = "./internal/bytefrog"
	callevent    = "./internal/call/callevent"
	guard        = "./internal/bytefrog/guard"
	receiver     = "./receiver/bytefrogreceiver/internal/session"
	pairing      = "./internal/call/engine"
	counting     = "./connector/stackpairingconnector"
	distribution = "./test"
	lttng        = "./internal/lttng/session"
	rbkit        = "./internal/rbkit"
	rbkitToPdata = "./receiver/rbkitreceiver"
	greysBinary  = "./internal/greys/gp"
	greysConsole = "./internal/greys/console"
	greysToPdata = "./receiver/greysreceiver"
	javaSignals  = "./internal/javamethods/signals"
	zmtp         = "./internal/rbkit/zmtp"
	flameGraph   = "./exporter/flamegraphexporter"
	pages        = "./exporter/flamegraphexporter/internal/web"
	jsonFile     = "./exporter/otlpjsonfileexporter"
	traceFile    = "./exporter/perfettoexporter"
)

// timesBabeltrace claims that a benchmark of reading is so many times faster than babeltrace2, with
// the same trace.
func timesBabeltrace(bound float64, what, against, trace, ours, theirs string) claim {
	return comparedWithBabeltrace(bound, what, against, at(lttng, "ReadLTTng/"+trace+"/"+theirs), at(lttng, "ReadLTTng/"+trace+"/"+ours))
}

// recordedTimesBabeltrace claims the same of the receiver ctf_file in the distribution, as a whole process.
func recordedTimesBabeltrace(bound float64, what, against, trace, ours, theirs string) claim {
	return comparedWithBabeltrace(bound, what, against, at(distribution, "CTFFile/"+trace+"/"+theirs), at(distribution, "CTFFile/"+trace+"/"+ours))
}

func comparedWithBabeltrace(bound float64, what, against string, theirs, ours measured) claim {
	return claim{
		what: what, against: against, bound: bound, atLeast: true, of: theirs, over: ours,
		peer: "babeltrace2", remedy: "apt-get install babeltrace2 (Debian)",
	}
}

// timesLibzmq claims that messages of a size are received so many times as fast as libzmq
// does, from the same publisher.
func timesLibzmq(what, size string) claim {
	return claim{
		what: what, against: "libzmq in C, times as fast", bound: 1.5, atLeast: true,
		of: at(zmtp, "Receive/"+size+"/libzmq").in(perMessage), over: at(zmtp, "Receive/"+size+"/callbraid").in(perMessage),
		peer: "/usr/include/zmq.h", remedy: "apt-get install gcc libc6-dev libzmq3-dev (Debian)",
	}
}

// withBytefrogsAgent claims that a traced program is so many times as fast with the connector, metrics, profiles and one of a
// hundred traces as with another reader of its agent's data. The benchmark
// fails if spans or metrics differ from the program's own counts.
func withBytefrogsAgent(bound float64, what, against, reader string) claim {
	return claim{
		what: what, against: against, bound: bound, atLeast: true,
		of: at(distribution, "BytefrogsAgent/"+reader).in(perCall), over: at(distribution, "BytefrogsAgent/connector").in(perCall),
		variable: "CALLBRAID_BYTEFROG_AGENT", remedy: "the absolute path of the agent, which no distribution has a package of",
	}
}

// page claims that one of the pages of flame graphs costs at most so many times as much as reading
// the profile of the same paths with the pprof library.
func page(bound float64, what, benchmark string) claim {
	return atMost(bound, "  its "+what, "reading the profile with the pprof library",
		at(pages, "Pages/"+benchmark).in(perPage), at(pages, "ReadProfile").in(perPage))
}

const (
	summing   = "adding up the bytes (Adler-32)"
	building  = "only building those spans with pdata"
	copying   = "copying them with pdata"
	validJSON = "json.Valid of the same"
	allSpans  = "the processor, with the spans of all calls"
	skipping  = "msgp.Skip of the same"
	dummy     = "babeltrace2 -o dummy, times as fast"
	text      = "babeltrace2 writing text, times as fast"
)

var buildSpans = at(receiver, "BuildSpans")

var claims = []claim{
	atMost(0.9, "decode Bytefrog messages", summing, at(bytefrog, "DecodeEvents"), at(bytefrog, "SumEvents")),
	below(0.01, "  allocations, the names' included", "an event", at(bytefrog, "DecodeEvents").in(allocationsPerEvent)),
	atMost(2.3, "pack and unpack a batch", "encoding/binary with fixed widths", at(callevent, "PackUnpack"), at(callevent, "FixedWidth")),
	below(0.01, "  allocations, the tables' included", "an event", at(callevent, "PackUnpack").in(allocationsPerEvent)),
	atMost(7.5, "bytes to batches", summing, at(receiver, "BytesToBatches"), at(receiver, "SumBytes")),
	atMost(2.3, "bytes to spans", building, at(receiver, "BytesToSpans"), buildSpans),
	atMost(0.75, "  min_duration leaving out all", building, at(receiver, "BytesToNothing"), buildSpans),
	atMost(1.4, "batches to spans", copying, at(pairing, "ConsumeTraces/in_order"), at(pairing, "CopySpans")),
	atMost(1.4, "  of three connections, out of order", copying, at(pairing, "ConsumeTraces/out_of_order"), at(pairing, "CopySpans")),
	atMost(0.3, "  min_duration leaving out all", copying, at(pairing, "ConsumeTraces/left_out"), at(pairing, "CopySpans")),
	atMost(2.8, "a batch with one call", copying, at(pairing, "SmallHandOver"), at(pairing, "CopySmallHandOver")),
	atMost(1.25, "spans that are no batches, decoding included", "only decoding them", at(pairing, "OtherSpans"), at(pairing, "DecodeOtherSpans")),
	adds(15, "folding calls into sums by function and by call path, beside pairing", "ns of CPU time an event", at(pairing, "ConsumeTraces/left_out_and_folded"), at(pairing, "ConsumeTraces/left_out")),
	atMost(0.27, "the connector stack_pairing: metrics of all calls", allSpans, at(counting, "ConsumeTraces/metrics"), at(counting, "ConsumeTraces/processor")),
	atMost(0.32, "  the connector with profiles of all calls too, and spans of one of a hundred traces", allSpans, at(counting, "ConsumeTraces/metrics_profiles_1_percent"), at(counting, "ConsumeTraces/processor")),
	within(200, "  its interval of 100,000 call paths: metrics", "ms of CPU time", at(counting, "Interval/metrics").in(perInterval)),
	within(200, "  its interval of 100,000 call paths: profiles", "ms of CPU time", at(counting, "Interval/profiles").in(perInterval)),
	within(10, "  how long an interval of metrics blocks pairing", "ms of CPU time", at(counting, "Interval/metrics").in(blocked)),
	within(10, "  how long an interval of profiles blocks pairing", "ms of CPU time", at(counting, "Interval/profiles").in(blocked)),
	atMost(3.5, "the distribution, over loopback, nop exporter", building, at(distribution, "Replay"), buildSpans),
	figure("  the same with GOGC=200 in its environment", "M events per CPU-second", at(distribution, "ReplayWithLazyCollection").in(eventsPerCPU)),
	atMost(1.5, "  peak memory after 10 times the events", "after a tenth of them", at(distribution, "Replay").in("peak-MiB-at-10x"), at(distribution, "Replay").in(peak)),
	{
		what: "  the same with the connector, profiles and one of a hundred traces", against: "the processor, times the events per CPU-second", bound: 3, atLeast: true,
		of: at(distribution, "Replay"), over: at(distribution, "ReplayCounted"),
	},
	atMost(1.5, "  the connector's peak memory after 10 times the events", "after a tenth of them", at(distribution, "ReplayCounted").in("peak-MiB-at-10x"), at(distribution, "ReplayCounted").in(peak)),
	withBytefrogsAgent(1.3, "a program with two threads that Bytefrog's own agent traces, with the connector", "the processor, times the program's speed", "processor"),
	withBytefrogsAgent(0.8, "  its speed, beside a sink that discards", "a program that only reads and discards, times the speed", "discarded"),
	figure("one collector for Jaeger and Prometheus, which keeps all traces", "ns of CPU time an event", at(distribution, "OneCollector/all_traces")),
	figure("  as shipped, with at most 20,000 spans a second", "ns of CPU time an event", at(distribution, "OneCollector/as_shipped")),
	figure("  two tiers: the collector that pairs", "ns of CPU time an event", at(distribution, "Tiers/1_pairing").in("pair-cpu-ns/event")),
	atMost(0.17, "  the one that receives", "the one that pairs", at(distribution, "Tiers/1_pairing").in("receive-cpu-ns/event"), at(distribution, "Tiers/1_pairing").in("pair-cpu-ns/event")),
	atMost(1.4, "  two that pair", "one", at(distribution, "Tiers/2_pairing").in("pair-cpu-ns/event"), at(distribution, "Tiers/1_pairing").in("pair-cpu-ns/event")),
	atMost(1.5, "  three that pair", "one", at(distribution, "Tiers/3_pairing").in("pair-cpu-ns/event"), at(distribution, "Tiers/1_pairing").in("pair-cpu-ns/event")),
	figure("  a batch without events: the collector that receives", "µs of CPU time", at(distribution, "SmallBatches").in("receive-cpu-µs/batch")),
	figure("  the one that pairs", "µs of CPU time", at(distribution, "SmallBatches").in("pair-cpu-µs/batch")),
	figure("  an agent that comes and goes: the collector that receives", "µs of CPU time", at(distribution, "ShortStreams").in("receive-cpu-µs/stream")),
	figure("  the one that pairs", "µs of CPU time", at(distribution, "ShortStreams").in("pair-cpu-µs/stream")),

	atMost(2.4, "bytefrog-guard: pass an event on", "only reading and writing it", at(guard, "Pass/guard"), at(guard, "Pass/copy")),
	below(0.001, "  allocations, those of the start included", "an event", at(guard, "Pass/guard").in("mallocs/event")),
	atMost(0.36, "  its walk over messages", summing, at(guard, "Walk/first"), at(guard, "Walk/summed")),
	atMost(0.58, "  when a collector was lost", summing, at(guard, "Walk/later"), at(guard, "Walk/summed")),
	below(0.001, "  allocations there", "an event", at(guard, "Walk/later").in(allocationsPerEvent)),
	atMost(4.3, "  a message's way to the collector, in the middle", "without a guard", at(guard, "Latency/guard").in("median-us"), at(guard, "Latency/direct").in("median-us")),
	atMost(1, "  longest wait of a program whose collector is stopped", "what --max-wait-per-second allows, and a sleeper's wait for a processor", at(distribution, "BehindAGuard/stopped").in("longest-wait-ms"), at(distribution, "BehindAGuard/stopped").in("allowed-ms")),
	atMost(1, "  the same, killed and started again", "the same", at(distribution, "BehindAGuard/killed").in("longest-wait-ms"), at(distribution, "BehindAGuard/killed").in("allowed-ms")),

	timesBabeltrace(5.2, "LTTng: every field of every event", dummy, "contexts", "fields", "babeltrace2Dummy"),
	timesBabeltrace(3.3, "  without contexts", dummy, "bare", "fields", "babeltrace2Dummy"),
	below(0.01, "  allocations, those of the start included", "an event", at(lttng, "ReadLTTng/contexts/fields").in(allocationsPerEvent)),
	timesBabeltrace(2.2, "LTTng: log records of all events", text, "contexts", "logRecords", "babeltrace2Text"),
	timesBabeltrace(2.2, "  without contexts", text, "bare", "logRecords", "babeltrace2Text"),
	atMost(1.6, "  with contexts", copying, at(lttng, "ReadLTTng/contexts/logRecords"), at(lttng, "ReadLTTng/contexts/copiedRecords")),
	timesBabeltrace(1.4, "LTTng: batches and paired spans", dummy, "contexts", "spans", "babeltrace2Dummy"),
	recordedTimesBabeltrace(3, "ctf_file in the distribution: log records of function calls", text, "functions", "logRecords", "babeltrace2Text"),
	recordedTimesBabeltrace(3, "  of a kernel", text, "kernel", "logRecords", "babeltrace2Text"),
	recordedTimesBabeltrace(5, "  without log records, function calls", dummy, "functions", "nothing", "babeltrace2Dummy"),
	recordedTimesBabeltrace(5, "  without log records, a kernel", dummy, "kernel", "nothing", "babeltrace2Dummy"),
	atMost(1.5, "LTTng agents: 1,000 with 500 loggers each, for an agent", "100 of them, for an agent", at(distribution, "ListAgents/1000").in("cpu-us/agent"), at(distribution, "ListAgents/100").in("cpu-us/agent")),
	figure("  until the distribution has listed all", "s", at(distribution, "ListAgents/1000").in("listed-s")),

	atMost(0.45, "Rbkit: decode captured object events", skipping, at(rbkit, "Decode/objects"), at(rbkit, "Skip/objects")),
	atMost(0.52, "  object space dumps", skipping, at(rbkit, "Decode/dumps"), at(rbkit, "Skip/dumps")),
	below(0.001, "  allocations", "an event", at(rbkit, "Decode/dumps").in(allocationsPerEvent)),
	atMost(10, "  messages to pdata, released dialect", "only reading them", at(rbkitToPdata, "MessagesToPdata/released-30s"), at(rbkitToPdata, "ReadMessages/released-30s")),
	atMost(10, "  messages to pdata, documented dialect", "only reading them", at(rbkitToPdata, "MessagesToPdata/documented-30s"), at(rbkitToPdata, "ReadMessages/documented-30s")),
	below(64, "  a message of 415,000 events of objects that live on, above idle", "MiB at peak", at(distribution, "LargeRbkitMessage/live").in(peak)),
	below(64, "  the same of objects that are created and destroyed", "MiB at peak", at(distribution, "LargeRbkitMessage/gone").in(peak)),
	timesLibzmq("ZMTP: messages of 1 KiB over loopback", "1KiB"),
	timesLibzmq("  messages of 100 KiB", "100KiB"),

	atMost(0.82, "Greys, binary protocol: decode cycles of 500 methods", validJSON, at(greysBinary, "DecodeGP/monitor"), at(greysBinary, "DecodeGP/monitor_valid")),
	below(0.01, "  allocations", "a method", at(greysBinary, "DecodeGP/monitor").in(allocationsPerEvent)),
	atMost(0.78, "  recorded calls", validJSON, at(greysBinary, "DecodeGP/records"), at(greysBinary, "DecodeGP/records_valid")),
	atMost(0.71, "  stacks", validJSON, at(greysBinary, "DecodeGP/stack"), at(greysBinary, "DecodeGP/stack_valid")),
	atMost(5.7, "Greys console: decode tables of monitors", summing, at(greysConsole, "DecodeConsole/tables"), at(greysConsole, "DecodeConsole/tables_summed")),
	atMost(20, "  trees of calls", summing, at(greysConsole, "DecodeConsole/trees"), at(greysConsole, "DecodeConsole/trees_summed")),
	atMost(6.9, "  stacks", summing, at(greysConsole, "DecodeConsole/stacks"), at(greysConsole, "DecodeConsole/stacks_summed")),
	atMost(7.8, "  recorded calls", summing, at(greysConsole, "DecodeConsole/records"), at(greysConsole, "DecodeConsole/records_summed")),
	atMost(6.7, "  methods", summing, at(greysConsole, "DecodeConsole/methods"), at(greysConsole, "DecodeConsole/methods_summed")),
	atMost(2.9, "Greys: rows of 500 methods to metrics, collected after each cycle", copying, at(greysToPdata, "RowsToMetrics/500"), at(greysToPdata, "RowsToMetrics/500_copied")),
	atMost(2.9, "  call trees to spans", copying, at(javaSignals, "TreesToSpans/made"), at(javaSignals, "TreesToSpans/copied")),

	atMost(2.7, "flame graph: fold spans, callees first", "copying them over their copies", at(flameGraph, "FoldTraces/callees_first"), at(flameGraph, "FoldTraces/callees_first_copied")),
	atMost(2.95, "  callers first", "copying them over their copies", at(flameGraph, "FoldTraces/callers_first"), at(flameGraph, "FoldTraces/callers_first_copied")),
	below(320, "  memory of a call path, with the data kept of its span", "bytes", at(flameGraph, "PathMemory").in("B/path")),
	below(1.05, "  memory after 50 million spans of the same paths, against the first million", "times", at(flameGraph, "FoldMemory").in("times-at-50M")),
	page(0.001, "start page", "start"),
	page(0.4, "page of a service with 100,000 call paths", "service"),
	page(1, "flame graph of it", "flamegraph"),
	within(200, "  the same", "ms of CPU time", at(pages, "Pages/flamegraph").in(perPage)),
	within(200, "  a search in its flame graph", "ms of CPU time", at(pages, "Pages/flamegraph_data").in(perPage)),
	inBrowser(1000, "  its first picture in a browser", "ms", at(distribution, "FirstPicture").in(perPicture)),
	page(1.2, "pprof's top", "top"),
	page(1.1, "top of 50 functions", "top_50"),
	page(1.25, "top without a function, which is hidden", "top_without_a_function"),
	page(0.36, "pprof's peek at a function", "peek"),
	page(1, "download for pprof", "pprof"),
	page(0.36, "download of folded stacks", "folded"),
	page(0.92, "download for speedscope", "speedscope"),
	within(300, "  its page that compares two trees of 100,000 paths", "ms of CPU time", at(pages, "Pages/compare").in(perPage)),
	atMost(3.5, "perfetto: write spans", "copying them over their copies", at(traceFile, "WriteTraces/maven"), at(traceFile, "WriteTraces/maven_copied")),
	figure("  the same", "M spans per CPU-second", at(traceFile, "WriteTraces/maven").in(eventsPerCPU)),
	below(1.5, "  size of a slice", "bytes", at(traceFile, "WriteTraces/maven").in("B/slice")),
	figure("  spans of eight threads, with exact times", "M spans per CPU-second", at(traceFile, "WriteTraces/eight_threads").in(eventsPerCPU)),
	below(8, "  size of a slice of these", "bytes", at(traceFile, "WriteTraces/eight_threads").in("B/slice")),
	atMost(2.2, "otlp_json_file: write spans", "only making their JSON with pdata", at(jsonFile, "ConsumeTraces"), at(jsonFile, "MarshalTraces")),
}
