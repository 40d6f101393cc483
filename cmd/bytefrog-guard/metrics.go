// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/callbraid/callbraid/internal/bytefrog/guard"
)

// metric is one metric: its value is looked up when it is asked for.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	value      func(c *guard.Counts, s guard.State) float64
}

type (
	counts = guard.Counts
	state  = guard.State
)

// all returns all metrics except those of the process.
func all() []metric {
	const gauge, sum = prometheus.GaugeValue, prometheus.CounterValue
	return []metric{
		{"agents", "Agents.", gauge, func(_ *counts, s state) float64 { return float64(s.Agents) }},
		{"agents_connected", "Agents that have a collector.", gauge, func(_ *counts, s state) float64 { return float64(s.Connected) }},
		{"agents_held", "Agents that are suspended until their collector has accepted the waiting data.", gauge, func(_ *counts, s state) float64 { return float64(s.Stalled) }},
		{"waiting_bytes", "Bytes that wait for collectors.", gauge, func(_ *counts, s state) float64 { return float64(s.Waiting) }},
		{"names_bytes", "Bytes of names in memory.", gauge, func(_ *counts, s state) float64 { return float64(s.Names) }},
		{"agents_taken_total", "Accepted agents.", sum, func(c *counts, _ state) float64 { return float64(c.Agents.Load()) }},
		{"agents_turned_away_total", "Agents that were started to run untraced.", sum, func(c *counts, _ state) float64 { return float64(c.TurnedAway.Load()) }},
		{"connections_refused_total", "Connections that were refused, or not of an agent.", sum, func(c *counts, _ state) float64 { return float64(c.Refused.Load()) }},
		{"connections_evicted_total", "Connections that were closed for new ones, before they had sent their hello.", sum, func(c *counts, _ state) float64 { return float64(c.Evicted.Load()) }},
		{"received_bytes_total", "Bytes received on data connections.", sum, func(c *counts, _ state) float64 { return float64(c.Bytes.Load()) }},
		{"events_passed_total", "Call events and markers that were written to a collector, read or not, or that wait for it.", sum, func(c *counts, _ state) float64 { return float64(c.Passed.Load()) }},
		{"events_dropped_total", "Call events and markers that arrived without a collector, or before its run.", sum, func(c *counts, _ state) float64 { return float64(c.Dropped.Load()) }},
		{"class_reports_dropped_total", "Reports of classes that arrived without a collector.", sum, func(c *counts, _ state) float64 { return float64(c.ClassReports.Load()) }},
		{"lost_bytes_total", "Bytes that waited in the guard for a lost collector. Bytes that were written to it count as forwarded.", sum, func(c *counts, _ state) float64 { return float64(c.LostBytes.Load()) }},
		{"gave_way_total", "Times that an agent was disconnected from its collector, or its names were forgotten, because all agents together reached --total-memory.", sum, func(c *counts, _ state) float64 { return float64(c.GaveWay.Load()) }},
		{"suspensions_total", "Suspensions of agents.", sum, func(c *counts, _ state) float64 { return float64(c.Suspensions.Load()) }},
		{"stalls_total", "Suspensions of agents because their collector accepted nothing, or too little.", sum, func(c *counts, _ state) float64 { return float64(c.Stalls.Load()) }},
		{"untraced_seconds_total", "Seconds for which agents were suspended because their collector was too slow, or there was none, of all agents together.", sum, func(c *counts, _ state) float64 { return time.Duration(c.Untraced.Load()).Seconds() }},
		{"runs_total", "Runs that began at collectors.", sum, func(c *counts, _ state) float64 { return float64(c.Runs.Load()) }},
		{"losses_total", "Runs whose collector was lost.", sum, func(c *counts, _ state) float64 { return float64(c.Losses.Load()) }},
		{"names_forgotten_total", "Names that were forgotten because there were too many.", sum, func(c *counts, _ state) float64 { return float64(c.Forgotten.Load()) }},
		{"bad_data_total", "Times that an agent sent unreadable data.", sum, func(c *counts, _ state) float64 { return float64(c.BadData.Load()) }},
	}
}

const namespace = "bytefrog_guard"

// observer collects the counts of a guard for a registry.
type observer struct {
	guard        *guard.Guard
	metrics      []metric
	descriptions []*prometheus.Desc
}

func newObserver(guard *guard.Guard) *observer {
	o := &observer{guard: guard, metrics: all()}
	for _, m := range o.metrics {
		o.descriptions = append(o.descriptions, prometheus.NewDesc(prometheus.BuildFQName(namespace, "", m.name), m.help, nil, nil))
	}
	return o
}

// Describe sends the descriptions of all metrics.
func (o *observer) Describe(to chan<- *prometheus.Desc) {
	for _, d := range o.descriptions {
		to <- d
	}
}

// Collect sends the values.
func (o *observer) Collect(to chan<- prometheus.Metric) {
	state := o.guard.State()
	for i, m := range o.metrics {
		to <- prometheus.MustNewConstMetric(o.descriptions[i], m.kind, m.value(o.guard.Counts(), state))
	}
}

// metricsHandler serves the metrics of a guard, of its log, and of the process.
func metricsHandler(guard *guard.Guard, log *lines) http.Handler {
	registry := prometheus.NewRegistry()
	dropped := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "log_lines_dropped_total", Help: "Lines of the log that were dropped because it was not read, or could not be written.",
	}, func() float64 { return float64(log.total.Load()) })
	registry.MustRegister(newObserver(guard), dropped, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return mux
}
