// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"net"
	"strings"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// Event names of log records.
const (
	eventMarker           = "bytefrog.marker"
	eventClassTransformed = "bytefrog.class.transformed"
	eventClassIgnored     = "bytefrog.class.ignored"
	eventClassFailed      = "bytefrog.class.failed"
	eventAgentStarted     = "bytefrog.agent.started"
	eventAgentMode        = "bytefrog.agent.mode"
	eventAgentError       = "bytefrog.agent.error"
	eventAgentLeft        = "bytefrog.agent.left"
)

// Attributes of log records that are not in the semantic conventions, and two that are.
const (
	attributeRunID       = "bytefrog.run.id"
	attributeSequence    = "bytefrog.sequence"
	attributeMarkerKey   = "bytefrog.marker.key"
	attributeMarkerValue = "bytefrog.marker.value"
	attributeClass       = "bytefrog.class.name"
	attributeMode        = "bytefrog.agent.mode"
	attributeModeBefore  = "bytefrog.agent.mode.previous"
	attributeVersion     = "bytefrog.protocol.version"
	attributeCause       = "bytefrog.end.cause"
	attributePeerAddress = "network.peer.address"
	attributePeerPort    = "network.peer.port"
)

// logSink is the queue of the log records of all runs. It drops records without room, so no run
// waits for it.
type logSink = handover.Logs[logRecord]

// maxLogBatch bounds the log records of one call of the pipeline.
const maxLogBatch = 1000

// newLogSink opens the queue; nil: no pipeline takes logs.
func newLogSink(run *receiverkit.Run, config *Config, own *telemetry.Telemetry) *logSink {
	return receiverkit.NewLogs(run, config.Limits.LogLimits, handover.QueueSettings[logRecord, plog.Logs]{
		Overflow: handover.OverflowDrop, MaxAtOnce: maxLogBatch,
		Size:    func(l *logRecord) (records, bytes int) { return 1, l.size() },
		Make:    func(records []logRecord) plog.Logs { return logsOf(run.Kit, records) },
		Dropped: own.LogRecordsDropped,
	})
}

// runLogs makes the log records of a run. Without a logs pipeline it does nothing. It implements
// session.Records.
type runLogs struct {
	sink *logSink
	// off has the event names that are switched off.
	off    map[string]bool
	origin *origin
	now    func() time.Time
}

// origin is the run that log records are from.
type origin struct {
	run      uint8
	resource pcommon.Resource
}

// logRecord is a log record in the queue.
type logRecord struct {
	*origin
	event      string
	severity   plog.SeverityNumber
	body       string
	time       time.Time
	observed   time.Time
	attributes []logAttribute
}

type logAttribute struct {
	key   string
	text  string
	int   int64
	isInt bool
}

// size returns the approximate memory of a record. A text in the body and in an attribute counts
// twice, because the batch has two copies of it.
func (l *logRecord) size() int {
	size := int(unsafe.Sizeof(*l)) + len(l.body)
	for i := range l.attributes {
		size += int(unsafe.Sizeof(l.attributes[i])) + len(l.attributes[i].text)
	}
	return size
}

func text(key, value string) logAttribute { return logAttribute{key: key, text: value} }

func number(key string, value int64) logAttribute {
	return logAttribute{key: key, int: value, isInt: true}
}

func (l runLogs) add(event string, severity plog.SeverityNumber, body string, attributes ...logAttribute) {
	if l.sink == nil || l.off[event] {
		return
	}
	now := l.now()
	l.sink.Enqueue(logRecord{
		origin: l.origin, event: event, severity: severity, body: body, time: now, observed: now, attributes: attributes,
	})
}

// Marker reports a marker of the traced program, with the program's time.
func (l runLogs) Marker(m bytefrog.Marker, sequence uint64, at time.Time) {
	if l.sink == nil || l.off[eventMarker] {
		return
	}
	body := m.Value
	if m.Key != "" {
		body = m.Key + ": " + m.Value
	}
	l.sink.Enqueue(logRecord{
		origin: l.origin, event: eventMarker, severity: plog.SeverityNumberInfo, body: body,
		time: at, observed: l.now(),
		attributes: []logAttribute{
			text(attributeMarkerKey, m.Key), text(attributeMarkerValue, m.Value), number(attributeSequence, int64(sequence)),
		},
	})
}

// Class reports whether the agent has instrumented a class.
func (l runLogs) Class(m bytefrog.ClassReport) {
	if l.sink == nil {
		return
	}
	event, severity := eventClassTransformed, plog.SeverityNumberDebug
	switch m.Result {
	case bytefrog.TypeClassIgnored:
		event = eventClassIgnored
	case bytefrog.TypeClassTransformFailed:
		event, severity = eventClassFailed, plog.SeverityNumberWarn
	}
	l.add(event, severity, m.Result.String()+": "+m.Class, text(attributeClass, strings.ReplaceAll(m.Class, "/", ".")))
}

// Started reports that the agent was started.
func (l runLogs) Started(version uint8, peer net.Addr) {
	host, port := socket.HostPort(peer)
	l.add(eventAgentStarted, plog.SeverityNumberInfo, "The agent was started",
		number(attributeVersion, int64(version)), text(attributePeerAddress, host), number(attributePeerPort, int64(port)))
}

// Mode reports a change of the agent's mode.
func (l runLogs) Mode(before, after bytefrog.Mode) {
	l.add(eventAgentMode, plog.SeverityNumberInfo, "The agent is "+after.String(),
		text(attributeMode, modeAttribute(after).String()), text(attributeModeBefore, modeAttribute(before).String()))
}

// Error reports an error of the agent.
func (l runLogs) Error(m bytefrog.ErrorMessage) {
	l.add(eventAgentError, plog.SeverityNumberError, m.Text)
}

// Ended reports the end of the run.
func (l runLogs) Ended(e session.Ending) {
	severity := plog.SeverityNumberInfo
	if e.Cause != callevent.CauseEnded && e.Cause != callevent.CauseShutdown {
		severity = plog.SeverityNumberWarn
	}
	body := e.Text
	if e.Err != nil {
		body += ": " + e.Err.Error()
	}
	l.add(eventAgentLeft, severity, body, text(attributeCause, e.Cause.String()))
}

// order reports an order of an operator.
func (l runLogs) order(r agentcontrol.Record) {
	if l.sink == nil {
		return
	}
	var attributes []logAttribute
	for _, a := range r.Attributes() {
		attributes = append(attributes, text(a.Key, a.Value))
	}
	l.add(agentcontrol.EventName, r.Severity(), r.Body(), attributes...)
}

// logsOf returns a batch of log records. Adjacent records of one run share a resource.
func logsOf(kit *receiverkit.Kit, all []logRecord) plog.Logs {
	logs := plog.NewLogs()
	var records plog.LogRecordSlice
	var of *origin
	for i := range all {
		l := &all[i]
		if l.origin != of {
			of = l.origin
			records = kit.AppendLogs(logs, of.resource)
		}
		l.to(records.AppendEmpty())
	}
	return logs
}

// to writes the record into a batch.
func (l *logRecord) to(r plog.LogRecord) {
	r.SetEventName(l.event)
	r.SetTimestamp(pcommon.NewTimestampFromTime(l.time))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(l.observed))
	r.SetSeverityNumber(l.severity)
	r.SetSeverityText(l.severity.String())
	r.Body().SetStr(l.body)
	attributes := r.Attributes()
	attributes.EnsureCapacity(len(l.attributes) + 1)
	attributes.PutInt(attributeRunID, int64(l.run))
	for _, a := range l.attributes {
		if a.isInt {
			attributes.PutInt(a.key, a.int)
		} else {
			attributes.PutStr(a.key, a.text)
		}
	}
}
