// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/handover"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// The histograms, beside the metrics of metadata.yaml.
const (
	metricMarkDuration  = "ruby.gc.mark.duration"
	metricCycleDuration = "ruby.gc.cycle.duration"
)

// processState is what metrics are made of: what is known of a process at one moment.
type processState struct {
	origin                                 *origin
	messages, bytes, events, lost, samples int64
	stats                                  stats
	marking, whole                         histogram
	// classes and files are texts by the numbers of names, which never change.
	classes, files     []string
	created, destroyed counts
	tracked            int
	live               liveCounts
	sites              map[site]allocated
	// over says that the process has ended: what it is like now is not known.
	over bool
}

// state is a copy: the process goes on.
func (p *process) state() processState {
	return processState{
		origin: p.origin, messages: p.messages, bytes: p.bytes, events: p.events, lost: p.lost, samples: p.samples.count,
		stats: maps.Clone(p.stats), marking: p.cycles.marking, whole: p.cycles.whole,
		classes: p.classes.texts, files: p.allocations.files.texts,
		created: slices.Clone(p.objects.created), destroyed: slices.Clone(p.objects.destroyed),
		tracked: p.objects.tracked.len(),
		live:    p.dumps.live, // made anew by each dump
		sites:   maps.Clone(p.allocations.sites),
	}
}

// points is how many data points a state makes, about.
func (s *processState) points() int {
	return 8 + len(s.stats) + len(s.created) + len(s.destroyed) + 2*len(s.live.objects) + 2*len(s.sites)
}

// metricsLoop hands on metrics of the servers.
type metricsLoop struct {
	*handover.Metrics[processState]
	builder *metadata.MetricsBuilder
}

// maxOver bounds the processes that have ended since the last collection.
const maxOver = 64

func newMetricsLoop(e *environment, settings receiver.Settings, next consumer.Metrics, living func() []processState) *metricsLoop {
	m := &metricsLoop{builder: metadata.NewMetricsBuilder(e.config.MetricsBuilderConfig, settings)}
	m.Metrics = handover.NewMetrics(handover.MetricsSettings[processState]{
		Settings: e.handoverSettings(), Next: next, Interval: e.config.CollectionInterval,
		Living:   living,
		Metrics:  func(states []processState) pmetric.Metrics { return m.metrics(states, e.now()) },
		MaxEnded: maxOver, Points: (*processState).points, What: "servers",
		Dropped: e.telemetry.metricPointsDropped,
	})
	return m
}

func (m *metricsLoop) metrics(states []processState, at time.Time) pmetric.Metrics {
	now := pcommon.NewTimestampFromTime(at)
	metrics := pmetric.NewMetrics()
	for i := range states {
		s := &states[i]
		// What the process counts begins with it, what the receiver counts when it came.
		s.recordStats(m.builder, now)
		m.builder.EmitForResource(metadata.WithResource(s.origin.resource), startingAt(s.origin.started))
		s.recordObserved(m.builder, now)
		m.builder.EmitForResource(metadata.WithResource(s.origin.resource), startingAt(s.origin.begun))
		made := m.builder.Emit().ResourceMetrics()
		s.appendHistograms(made, now)
		made.MoveAndAppendTo(metrics.ResourceMetrics())
	}
	return metrics
}

func startingAt(start time.Time) metadata.ResourceMetricsOption {
	return metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(start))
}

func (s *processState) recordStats(b *metadata.MetricsBuilder, now pcommon.Timestamp) {
	s.stats.record(b, now)
}

func (s *processState) recordObserved(b *metadata.MetricsBuilder, now pcommon.Timestamp) {
	b.RecordRbkitMessagesDataPoint(now, s.messages)
	b.RecordRbkitMessagesLostDataPoint(now, s.lost)
	b.RecordRbkitEventsDataPoint(now, s.events)
	b.RecordRbkitCPUSamplesDataPoint(now, s.samples)
	b.RecordRbkitNetworkIoDataPoint(now, s.bytes, metadata.AttributeNetworkIoDirectionReceive)
	byName(s.created, s.classes, func(class string, n int64) { b.RecordRubyObjectCreatedDataPoint(now, n, class) })
	byName(s.destroyed, s.classes, func(class string, n int64) { b.RecordRubyObjectDestroyedDataPoint(now, n, class) })
	for at, n := range s.sites {
		class, file := s.classes[at.class], s.files[at.file]
		b.RecordRubyAllocationCountDataPoint(now, n.objects, class, file)
		b.RecordRubyAllocationSizeDataPoint(now, n.bytes, class, file)
	}
	if s.over {
		return
	}
	if len(s.created) > 0 {
		b.RecordRubyObjectTrackedDataPoint(now, int64(s.tracked))
	}
	byName(s.live.objects, s.classes, func(class string, n int64) { b.RecordRubyHeapLiveObjectsDataPoint(now, n, class) })
	byName(s.live.bytes, s.classes, func(class string, n int64) { b.RecordRubyHeapLiveSizeDataPoint(now, n, class) })
}

// byName calls record with counts that are not 0.
func byName(c counts, texts []string, record func(name string, n int64)) {
	for i, n := range c {
		if n != 0 {
			record(texts[i], n)
		}
	}
}

// appendHistograms appends them to what was observed of the process, the last resource.
func (s *processState) appendHistograms(made pmetric.ResourceMetricsSlice, now pcommon.Timestamp) {
	if made.Len() == 0 {
		return
	}
	scopes := made.At(made.Len() - 1).ScopeMetrics()
	if scopes.Len() == 0 {
		return
	}
	to, start := scopes.At(0).Metrics(), pcommon.NewTimestampFromTime(s.origin.begun)
	s.marking.appendTo(to, metricMarkDuration, "How long garbage collections marked, from their start on.", start, now)
	s.whole.appendTo(to, metricCycleDuration, "How long garbage collections took from their start to the end of sweeping, most of which the program goes on.", start, now)
}
