// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package losses lists the collector's counters of losses and limits. Dashboards, alert rules and the page of agent_control show
// them. It knows their names only, not how components count.
package losses

// Counter is a metric of the collector that counts losses or limits. It has no series until its first increment.
type Counter struct {
	Metric string
	// Label divides it.
	Label string
	// Data describes the counted data, before the value of the label.
	Data string
}

// Dropped count data that the collector received and did not deliver.
var Dropped = []Counter{
	{"otelcol_receiver_bytefrog_events_dropped", "reason", "call events of bytefrog"},
	{"otelcol_receiver_lttng_live_call_events_dropped", "reason", "call events of lttng_live"},
	{"otelcol_receiver_ctf_file_call_events_dropped", "reason", "call events of ctf_file"},
	{"otelcol_receiver_bytefrog_log_records_dropped", "reason", "log records of bytefrog"},
	{"otelcol_receiver_lttng_live_log_records_dropped", "reason", "log records of lttng_live"},
	{"otelcol_receiver_ctf_file_log_records_dropped", "reason", "log records of ctf_file"},
	{"otelcol_receiver_lttng_jul_log_records_dropped", "reason", "log records of lttng_jul"},
	{"otelcol_receiver_rbkit_log_records_dropped", "reason", "log records of rbkit"},
	{"otelcol_receiver_greys_log_records_dropped", "reason", "log records of greys"},
	{"otelcol_receiver_arthas_log_records_dropped", "reason", "log records of arthas"},
	{"otelcol_receiver_rbkit_spans_dropped", "reason", "spans of rbkit"},
	{"otelcol_receiver_greys_spans_dropped", "reason", "spans of greys"},
	{"otelcol_receiver_arthas_spans_dropped", "reason", "spans of arthas"},
	{"otelcol_receiver_rbkit_samples_dropped", "reason", "profile samples of rbkit"},
	{"otelcol_receiver_arthas_samples_dropped", "reason", "profile samples of arthas"},
	{"otelcol_connector_stack_pairing_dropped_spans", "connector", "spans of the connector"},
	{"otelcol_connector_stack_pairing_dropped_samples", "connector", "profile samples of the connector"},
	{"otelcol_processor_stack_pairing_dropped_spans", "processor", "spans of the processor"},
	{"otelcol_exporter_perfetto_dropped_slices", "exporter", "spans of the exporter"},
	{"otelcol_exporter_perfetto_dropped_log_records", "exporter", "log records of the exporter"},
	{"otelcol_exporter_perfetto_dropped_values", "exporter", "values of metrics of the exporter"},
	{"otelcol_exporter_flame_graph_dropped_stored_trees", "reason", "stored call trees of flame_graph"},
	{"otelcol_exporter_flame_graph_dropped_samples", "exporter", "profile samples of kinds beyond the limit, of the exporter"},
	{"otelcol_exporter_send_failed_spans", "exporter", "spans of the exporter"},
	{"otelcol_exporter_enqueue_failed_spans", "exporter", "spans for the queue of the exporter"},
}

// Lost count data that got lost before the collector, or between two of them.
var Lost = []Counter{
	{"otelcol_connector_stack_pairing_missing_numbers", "connector", "sequence numbers of call events, of the connector"},
	{"otelcol_processor_stack_pairing_missing_numbers", "processor", "sequence numbers of call events, of the processor"},
	{"otelcol_receiver_lttng_live_events_discarded", "receiver", "events for which LTTng's tracer had no room"},
	{"otelcol_receiver_ctf_file_events_discarded", "receiver", "events for which the tracer of a recording had no room,"},
	{"otelcol_receiver_lttng_live_packets_lost", "receiver", "packets of LTTng"},
	{"otelcol_receiver_ctf_file_packets_lost", "receiver", "packets that recordings lack,"},
	{"otelcol_receiver_rbkit_messages_lost", "receiver", "messages of Rbkit"},
	{"otelcol_receiver_greys_replies_missing", "receiver", "answers of Greys"},
	{"otelcol_receiver_arthas_results_lost", "receiver", "results of Arthas"},
	{"otelcol_receiver_arthas_losses", "kind", "known or possible losses of results of Arthas, by"},
}

// Limited count peers that had to give up data or a connection because of a limit of the collector.
var Limited = []Counter{
	{"otelcol_extension_memory_budget_requests_to_give_way", "holder", "requests to free memory, to"},
	{"otelcol_connector_stack_pairing_shed_streams", "bound", "call streams of the connector, by"},
	{"otelcol_processor_stack_pairing_shed_streams", "bound", "call streams of the processor, by"},
	{"otelcol_receiver_bytefrog_runs_shed", "reason", "runs of bytefrog that ended, by"},
	{"otelcol_receiver_bytefrog_connections_evicted", "reason", "evicted connections of bytefrog,"},
	{"otelcol_receiver_lttng_jul_connections_evicted", "reason", "evicted connections of lttng_jul,"},
	{"otelcol_receiver_bytefrog_barriers_dropped", "receiver", "old breaks that batches no longer carry, of"},
	{"otelcol_receiver_greys_nodes_dropped", "receiver", "calls beyond the limit of a call tree, of"},
	{"otelcol_receiver_arthas_nodes_dropped", "receiver", "calls beyond the limit of a call tree, of"},
	{"otelcol_receiver_greys_inventory_dropped", "receiver", "classes and methods beyond the limit of lists, of"},
	{"otelcol_receiver_arthas_profile_bytes_dropped", "receiver", "bytes beyond the limit of a profile, of"},
	{"otelcol_receiver_rbkit_stacks_dropped", "receiver", "stacks beyond the limits of a snapshot, of"},
}
