// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/componentkit/losses"
)

// ruleFile is a file of alert rules as Prometheus reads it (its documentation, "Alerting rules").
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// runbooks is the page with a chapter for each alert, whose anchor is the alert's name in lower case.
const runbooks = "https://github.com/callbraid/callbraid/blob/main/docs/watch.md"

// alert is a rule. It fires if its expression holds for a time, in Prometheus' notation. Several rules of one name differ in their
// metric.
func alert(name, severity, metric, expression, lasting, summary string) rule {
	return rule{name, strings.ReplaceAll(expression, "METRIC", metric), lasting, map[string]string{"severity": severity, "metric": metric},
		map[string]string{"summary": summary, "runbook_url": runbooks + "#" + strings.ToLower(name)}}
}

// grew holds if a counter has grown in the last ten minutes. increase alone does not see the first increment of a counter, which
// has no series before.
func grew(c losses.Counter) string {
	return "sum by (instance, " + c.Label + ") (increase(METRIC[10m]) > 0 or (METRIC unless METRIC offset 10m) > 0)"
}

// ofCounters are rules of one name, one for each counter.
func ofCounters(name, summary string, counters []losses.Counter) (rules []rule) {
	for _, c := range counters {
		rules = append(rules, alert(name, "warning", c.Metric, grew(c), "", fmt.Sprintf(summary, c.Data+" {{ $labels."+c.Label+" }}")))
	}
	return rules
}

// servers are the receivers that connect to servers, and the names of those.
var servers = []struct{ receiver, name string }{{"rbkit", "Rbkit"}, {"greys", "Greys"}, {"arthas", "Arthas"}, {"lttng_live", "LTTng's relay daemon"}}

func allRules() ruleFile {
	loss := append(ofCounters("CallbraidDropsData", "The collector drops %s.", losses.Dropped), ofCounters("CallbraidMissesData", "Data did not reach the collector: %s.", losses.Lost)...)
	limits := append(ofCounters("CallbraidLimitReached", "A limit of the collector was reached: %s.", losses.Limited),
		alert("CallbraidBudgetNearLimit", "warning", "otelcol_extension_memory_budget_usage",
			"sum by (instance) (METRIC) > 0.9 * max by (instance) (otelcol_extension_memory_budget_limit)", "5m",
			"Peers hold {{ $value | humanize1024 }}B, more than 90% of the memory budget."))
	pressure := []rule{
		alert("CallbraidPipelineRefuses", "warning", "otelcol_receiver_bytefrog_handover_retries", "sum by (instance, receiver) (rate(METRIC[5m])) > 0", "10m",
			"A pipeline has refused call events of {{ $labels.receiver }} for 10 minutes: traced programs wait, or run untraced."),
		alert("CallbraidPipelineRefuses", "warning", "otelcol_receiver_lttng_live_handover_retries", "sum by (instance, receiver) (rate(METRIC[5m])) > 0", "10m",
			"A pipeline has refused call events of {{ $labels.receiver }} for 10 minutes: sessions wait in the relay daemon."),
		alert("CallbraidHoldsSpans", "warning", "otelcol_connector_stack_pairing_held_spans", "sum by (instance) (METRIC) > 0", "5m",
			"The next component has refused {{ $value }} finished spans for 5 minutes."),
		alert("CallbraidQueueNearlyFull", "warning", "otelcol_exporter_queue_size",
			"max by (instance, exporter, data_type) (METRIC / otelcol_exporter_queue_capacity) > 0.8", "10m",
			"The queue of {{ $labels.exporter }} has been more than 80% full for 10 minutes."),
		alert("CallbraidAgentSuspended", "info", "bytefrog_agent_status", `sum by (job, instance) (METRIC{bytefrog_agent_mode="suspended"}) > 0`, "15m",
			"The agent in {{ $labels.job }} {{ $labels.instance }} has been suspended for 15 minutes."),
		alert("CallbraidGuardHoldsAgents", "warning", "bytefrog_guard_agents_held", "sum by (instance) (METRIC) > 0", "5m",
			"A bytefrog-guard has held {{ $value }} agents suspended for 5 minutes, until their collector accepts waiting data."),
	}
	down := []rule{alert("CallbraidDown", "critical", "up", `METRIC{job="callbraid-collector"} == 0`, "2m", "Prometheus cannot reach the collector {{ $labels.instance }}.")}
	for _, s := range servers {
		down = append(down, alert("CallbraidServerDown", "warning", "otelcol_receiver_"+s.receiver+"_server_up", "METRIC == 0", "5m",
			"The collector has had no connection to "+s.name+" {{ $labels.server }} for 5 minutes."))
	}
	return ruleFile{[]ruleGroup{{"callbraid loss", loss}, {"callbraid limits", limits}, {"callbraid back-pressure", pressure}, {"callbraid servers", down}}}
}

// writeRules writes the file of alert rules.
func writeRules(path string) error {
	text, err := yaml.Marshal(allRules())
	if err != nil {
		return err
	}
	const head = "# Alert rules for Prometheus. docs/watch.md describes them, and the scrape configuration that they need.\n# internal/tools/monitoring generates this file: make generate.\n"
	return os.WriteFile(path, append([]byte(head), text...), 0o644)
}
