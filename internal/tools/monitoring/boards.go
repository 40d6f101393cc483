// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/callbraid/callbraid/internal/componentkit/losses"

// boards are all dashboards. Metrics of programs have the labels job and instance, which are service.name and
// service.instance.id. Metrics of the collector itself begin with otelcol_.
var boards = []board{methods, java, ruby, lttng, collector}

// methods are the calls that the connector stack_pairing counts.
var methods = board{
	name: "methods", title: "Callbraid: methods and functions", services: "code_function_calls_total",
	description: "Every call of traced programs, by method or function, as the connector stack_pairing counts them.",
	rows: []row{
		{"Calls", []panel{
			{"Calls per second", "The ten methods with most calls.", "ops", []query{
				{`topk(10, sum by (code_function_name) (rate(code_function_calls_total{job=~"$service"}[$__rate_interval])))`, "{{code_function_name}}"},
			}},
			{"Time per second", "The ten methods that take most time, callees included. A method that always runs in one thread has 1.", "s", []query{
				{`topk(10, histogram_sum(sum by (code_function_name) (rate(code_function_duration_seconds{job=~"$service"}[$__rate_interval]))))`, "{{code_function_name}}"},
			}},
		}},
		{"Duration", []panel{
			{"99 of a hundred calls need at most", "The ten slowest methods.", "s", []query{
				{`topk(10, histogram_quantile(0.99, sum by (code_function_name) (rate(code_function_duration_seconds{job=~"$service"}[$__rate_interval]))))`, "{{code_function_name}}"},
			}},
			{"Half of the calls need at most", "The ten slowest methods.", "s", []query{
				{`topk(10, histogram_quantile(0.5, sum by (code_function_name) (rate(code_function_duration_seconds{job=~"$service"}[$__rate_interval]))))`, "{{code_function_name}}"},
			}},
			{"All calls", "Percentiles of all methods together.", "s", []query{
				{`histogram_quantile(0.99, sum(rate(code_function_duration_seconds{job=~"$service"}[$__rate_interval])))`, "99 of a hundred"},
				{`histogram_quantile(0.95, sum(rate(code_function_duration_seconds{job=~"$service"}[$__rate_interval])))`, "95 of a hundred"},
				{`histogram_quantile(0.5, sum(rate(code_function_duration_seconds{job=~"$service"}[$__rate_interval])))`, "half"},
			}},
		}},
		{"Errors", []panel{
			{"Calls that an exception left, per second", "By exception.", "ops", []query{
				{`sum by (error_type) (rate(code_function_errors_total{job=~"$service"}[$__rate_interval]))`, "{{error_type}}"},
			}},
			{"Share of failing calls", "The ten methods with the largest share.", "percentunit", []query{
				{`topk(10, sum by (code_function_name) (rate(code_function_errors_total{job=~"$service"}[$__rate_interval])) / sum by (code_function_name) (rate(code_function_calls_total{job=~"$service"}[$__rate_interval])))`, "{{code_function_name}}"},
			}},
		}},
	},
}

// java is what Greys and Arthas report about live processes.
var java = board{
	name: "java", title: "Callbraid: live Java processes", services: "java_method_calls_total",
	description: "Methods that servers of Greys and Arthas watch, and the state of the JVM.",
	rows: []row{
		{"Methods", []panel{
			{"Calls per second", "The ten watched methods with most calls.", "ops", []query{
				{`topk(10, sum by (code_function_name) (rate(java_method_calls_total{job=~"$service"}[$__rate_interval])))`, "{{code_function_name}}"},
			}},
			{"Failures per second", "The ten watched methods with most failures.", "ops", []query{
				{`topk(10, sum by (code_function_name) (rate(java_method_failures_total{job=~"$service"}[$__rate_interval])))`, "{{code_function_name}}"},
			}},
			{"Time per second", "The ten watched methods that take most time.", "s", []query{
				{`topk(10, sum by (code_function_name) (rate(java_method_time_seconds_total{job=~"$service"}[$__rate_interval])))`, "{{code_function_name}}"},
			}},
		}},
		{"JVM", []panel{
			{"Memory", "Used memory, by pool.", "bytes", []query{
				{`sum by (job, jvm_memory_pool_name) (jvm_memory_used_bytes{job=~"$service"})`, "{{job}} {{jvm_memory_pool_name}}"},
			}},
			{"Threads", "Java threads, by state.", "short", []query{
				{`sum by (job, jvm_thread_state) (jvm_thread_count{job=~"$service"})`, "{{job}} {{jvm_thread_state}}"},
			}},
			{"Time of garbage collections per second", "By collector.", "percentunit", []query{
				{`sum by (job, jvm_gc_name) (rate(arthas_gc_time_seconds_total{job=~"$service"}[$__rate_interval]))`, "{{job}} {{jvm_gc_name}}"},
			}},
			{"Classes", "Classes that are loaded.", "short", []query{{`jvm_class_count{job=~"$service"}`, "{{job}}"}}},
		}},
	},
}

// ruby is what Rbkit reports.
var ruby = board{
	name: "ruby", title: "Callbraid: Ruby", services: "rbkit_messages_total",
	description: "The garbage collector and the objects of Ruby programs, as Rbkit reports them.",
	rows: []row{
		{"Garbage collector", []panel{
			{"Collections per second", "Minor and major ones.", "ops", []query{
				{`sum by (job) (rate(ruby_gc_minor_gc_count_total{job=~"$service"}[$__rate_interval]))`, "{{job}} minor"},
				{`sum by (job) (rate(ruby_gc_major_gc_count_total{job=~"$service"}[$__rate_interval]))`, "{{job}} major"},
			}},
			{"Duration of a collection", "The time that 99 of a hundred collections and mark phases need at most. Parts of the program run meanwhile.", "s", []query{
				{`histogram_quantile(0.99, sum by (le) (rate(ruby_gc_cycle_duration_seconds_bucket{job=~"$service"}[$__rate_interval])))`, "collection"},
				{`histogram_quantile(0.99, sum by (le) (rate(ruby_gc_mark_phase_duration_seconds_bucket{job=~"$service"}[$__rate_interval])))`, "mark phase"},
			}},
			{"Slots of the heap", "Slots with live objects, and free slots.", "short", []query{
				{`sum by (job) (ruby_gc_heap_live_slots{job=~"$service"})`, "{{job}} live"},
				{`sum by (job) (ruby_gc_heap_free_slots{job=~"$service"})`, "{{job}} free"},
			}},
			{"Memory", "All allocated pages, and all objects.", "bytes", []query{
				{`sum by (job) (ruby_gc_total_heap_size_bytes{job=~"$service"})`, "{{job}} pages"},
				{`sum by (job) (ruby_gc_total_memsize_bytes{job=~"$service"})`, "{{job}} objects"},
			}},
		}},
		{"Objects", []panel{
			{"Created per second", "The ten classes with most new objects.", "ops", []query{
				{`topk(10, sum by (ruby_class) (rate(ruby_object_created_total{job=~"$service"}[$__rate_interval])))`, "{{ruby_class}}"},
			}},
			{"Live objects", "The ten classes that take most memory, in the last object space dump.", "bytes", []query{
				{`topk(10, sum by (ruby_class) (ruby_heap_live_size_bytes{job=~"$service"}))`, "{{ruby_class}}"},
			}},
		}},
	},
}

// lttng is what the sessions and agents of LTTng report.
var lttng = board{
	name: "lttng", title: "Callbraid: LTTng", services: "lttng_events_total",
	description: "Sessions and recorded traces of LTTng, and its agents in Java and Python programs.",
	rows: []row{
		{"Sessions", []panel{
			{"Events per second", "By session.", "ops", []query{
				{`sum by (lttng_session_name) (rate(lttng_events_total{job=~"$service"}[$__rate_interval]) * on (job, instance) group_left (lttng_session_name) target_info)`, "{{lttng_session_name}}"},
			}},
			{"Loss per second", "Events for which the tracer had no room, and packets that could not be read.", "ops", []query{
				{`sum(rate(lttng_events_discarded_total{job=~"$service"}[$__rate_interval]))`, "discarded events"},
				{`sum(rate(lttng_packets_lost_total{job=~"$service"}[$__rate_interval]))`, "lost packets"},
			}},
			{"Received bytes per second", "Packets and metadata.", "Bps", []query{
				{`sum(rate(lttng_network_io_bytes_total{job=~"$service"}[$__rate_interval]))`, "bytes"},
			}},
			{"Processes and streams", "Processes whose calls are followed, and streams of packets that have not ended.", "short", []query{
				{`sum(lttng_process_count{job=~"$service"})`, "processes"},
				{`sum(lttng_stream_count{job=~"$service"})`, "streams"},
			}},
		}},
		{"Agents in Java and Python programs", []panel{
			{"Agents", "Registered agents, by domain.", "short", []query{{`sum by (lttng_agent_domain) (lttng_agent_count)`, "{{lttng_agent_domain}}"}}},
			{"Loggers", "Loggers in the agents' last lists, by domain.", "short", []query{{`sum by (lttng_agent_domain) (lttng_logger_count)`, "{{lttng_agent_domain}}"}}},
		}},
	},
}

// collector is the collector itself. Counters appear with their first increment, so an empty panel of losses is a good sign.
var collector = board{
	name: "collector", title: "Callbraid: the collector itself",
	description: "Whether the collector loses data, waits, or reaches a limit. Panels of losses are empty until data is lost.",
	rows: []row{
		{"Agents and servers", []panel{
			{"Bytefrog agents", "By the mode that they reported last.", "short", []query{
				{`sum by (bytefrog_agent_mode) (bytefrog_agent_status)`, "{{bytefrog_agent_mode}}"},
			}},
			{"Servers", "1 if a server is connected and has sent its identity.", "short", []query{
				{`otelcol_receiver_rbkit_server_up`, "Rbkit {{server}}"},
				{`otelcol_receiver_greys_server_up`, "Greys {{server}}"},
				{`otelcol_receiver_arthas_server_up`, "Arthas {{server}}"},
				{`otelcol_receiver_lttng_live_server_up`, "LTTng {{server}}"},
			}},
		}},
		{"Flow", []panel{
			{"Call events per second", "Received events, by receiver, and events in batches that stack_pairing accepted.", "ops", []query{
				{`sum(rate(otelcol_receiver_bytefrog_events[$__rate_interval]))`, "bytefrog"},
				{`sum(rate(otelcol_receiver_lttng_live_call_events[$__rate_interval]))`, "lttng_live"},
				{`sum(rate(otelcol_connector_stack_pairing_events[$__rate_interval]))`, "stack_pairing"},
			}},
			{"Spans per second", "Calls that ended, and spans that exporters delivered.", "ops", []query{
				{`sum(rate(otelcol_connector_stack_pairing_spans[$__rate_interval]))`, "ended calls"},
				{`sum by (exporter) (rate(otelcol_exporter_sent_spans[$__rate_interval]))`, "delivered by {{exporter}}"},
			}},
			{"Delay", "Time from the end of the oldest call of a hand-over to the hand-over: half and 99 of a hundred.", "s", []query{
				{`histogram_quantile(0.5, sum by (le) (rate(otelcol_connector_stack_pairing_delay_bucket[$__rate_interval])))`, "half"},
				{`histogram_quantile(0.99, sum by (le) (rate(otelcol_connector_stack_pairing_delay_bucket[$__rate_interval])))`, "99 of a hundred"},
			}},
		}},
		{"Back-pressure", []panel{
			{"Waiting data", "Events that wait for earlier ones, open calls, and finished spans that the next component refused.", "short", []query{
				{`sum(otelcol_connector_stack_pairing_waiting_events)`, "waiting events"},
				{`sum(otelcol_connector_stack_pairing_open_frames)`, "open calls"},
				{`sum(otelcol_connector_stack_pairing_held_spans)`, "held spans"},
			}},
			{"Queues of exporters", "Part of its size that each queue uses.", "percentunit", []query{
				{`otelcol_exporter_queue_size / otelcol_exporter_queue_capacity`, "{{exporter}} {{data_type}}"},
			}},
			{"Refusals per second", "Hand-overs that a pipeline refused, and that are sent again.", "ops", []query{
				{`sum by (receiver) (rate(otelcol_receiver_bytefrog_handover_retries[$__rate_interval]))`, "{{receiver}}"},
				{`sum by (receiver) (rate(otelcol_receiver_lttng_live_handover_retries[$__rate_interval]))`, "{{receiver}}"},
				{`sum by (connector) (rate(otelcol_connector_stack_pairing_refused_calls[$__rate_interval]))`, "{{connector}}"},
			}},
			{"Suspended agents per second", "How often the receiver suspended an agent because the pipeline refused.", "ops", []query{
				{`sum(rate(otelcol_receiver_bytefrog_suspends[$__rate_interval]))`, "suspends"},
			}},
		}},
		{"Loss", []panel{
			{"Dropped per second", "Events, spans, log records, profile samples and other data that was dropped, by component and reason.", "ops", perSecond(losses.Dropped)},
			{"Truncated calls per second", "Calls whose end was not seen, by cause.", "ops", []query{
				{`sum by (cause) (rate(otelcol_connector_stack_pairing_truncated_frames[$__rate_interval]))`, "{{cause}}"},
			}},
			{"Breaks per second", "Places in call streams after which the open calls are not known, by cause.", "ops", []query{
				{`sum by (cause) (rate(otelcol_connector_stack_pairing_breaks[$__rate_interval]))`, "{{cause}}"},
			}},
			{"Missing sequence numbers per second", "Numbers of events that did not arrive in time, and events that arrived too late.", "ops", []query{
				{`sum(rate(otelcol_connector_stack_pairing_missing_numbers[$__rate_interval]))`, "missing"},
				{`sum(rate(otelcol_connector_stack_pairing_late_events[$__rate_interval]))`, "late"},
			}},
		}},
		{"Memory and processor", []panel{
			{"Memory of peers", "Bytes that components hold for their peers, and the limit of all.", "bytes", []query{
				{`sum by (holder) (otelcol_extension_memory_budget_usage)`, "{{holder}}"},
				{`max(otelcol_extension_memory_budget_limit)`, "limit"},
			}},
			{"Memory of the process", "Resident memory.", "bytes", []query{{`otelcol_process_memory_rss`, "resident"}}},
			{"Processor time", "Cores that the collector uses.", "short", []query{{`rate(otelcol_process_cpu_seconds[$__rate_interval])`, "cores"}}},
			{"Limits per second", "How often a peer had to free memory or lost its connection because of a limit.", "ops", perSecond(losses.Limited)},
		}},
	},
}
