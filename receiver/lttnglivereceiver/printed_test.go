// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// Log records are compared with the output of babeltrace 1 for the same events: all of them, with all their fields
// and contexts.

// recordedOn is the day of the captures, which babeltrace does not print.
const recordedOn = "2026-11-20 "

// Facts that the text does not contain, by the names of fields and of options: the numbers that are floating point,
// and the lists of bytes.
var (
	floatingPoint = map[string]bool{"f32": true, "f64": true, "float": true, "double": true}
	listsOfBytes  = map[string]bool{"build_id": true, "hex4": true, "seq8": true, "seqhex": true}
)

// renamed are the fields and the contexts that become attributes with the names of the conventions. They are "" for
// parts of the record that are no attributes, and for additions of babeltrace.
var (
	renamedContexts = map[string]string{
		"vtid": "thread.id", "procname": "thread.name", "vpid": "", "debug_info": "",
	}
	// The thread.id of a managed thread is the runtime's number. The system's number has its own name.
	renamedContextsOfJava = map[string]string{"procname": "thread.name", "vpid": "", "debug_info": ""}
	renamedFields         = map[string]map[string]string{
		mapping.EventJUL:         {"msg": "", "logger_name": "", "int_loglevel": "", "class_name": "", "method_name": "", "int_threadid": "thread.id"},
		"lttng_ust_tracef:event": {"msg": ""},
		tracelogError:            {"msg": "", "line": "code.line.number", "file": "code.file.path", "func": "code.function.name"},
	}
)

const tracelogError = "lttng_ust_tracelog:LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR"

// severity is the severity of a log record.
type severity struct {
	number plog.SeverityNumber
	text   string
}

// severitiesOfJava are those of OpenTelemetry's instrumentation of java.util.logging for the standard levels, with
// the levels' names.
var severitiesOfJava = map[string]severity{
	"1000": {plog.SeverityNumberError, "SEVERE"},
	"900":  {plog.SeverityNumberWarn, "WARNING"},
	"800":  {plog.SeverityNumberInfo, "INFO"},
	"700":  {plog.SeverityNumberDebug3, "CONFIG"},
	"500":  {plog.SeverityNumberDebug2, "FINE"},
	"400":  {plog.SeverityNumberDebug, "FINER"},
	"300":  {plog.SeverityNumberTrace, "FINEST"},
}

// severitiesOfTracepoints are the severities of the levels in the captures.
var severitiesOfTracepoints = map[string]plog.SeverityNumber{
	"TRACE_ERR": plog.SeverityNumberError, "TRACE_WARNING": plog.SeverityNumberWarn, "TRACE_INFO": plog.SeverityNumberInfo,
	"TRACE_DEBUG_FUNCTION": plog.SeverityNumberDebug, "TRACE_DEBUG_LINE": plog.SeverityNumberDebug, "TRACE_DEBUG": plog.SeverityNumberDebug,
}

// comparedRecord contains all data of a log record.
type comparedRecord struct {
	Time, Event, Body, Scope, Host string
	Severity                       severity
	// Process is the process's ID, or "" if it is not known.
	Process string
	// Attributes have floating point numbers in the form of babeltrace.
	Attributes map[string]any
}

// expectedOf returns the expected log record of an event.
func expectedOf(t *testing.T, e *printed.Event) comparedRecord {
	t.Helper()
	r := comparedRecord{
		Time: recordedOn + e.Time, Event: e.Name, Body: e.Name, Scope: metadata.ScopeName, Host: e.Host, Process: e.Field("vpid"),
		Severity: severity{severitiesOfTracepoints[e.LevelName], e.LevelName}, Attributes: map[string]any{},
	}
	if text := e.Field("msg"); renamedFields[e.Name] != nil {
		r.Body = text
	}
	if e.Name == mapping.EventJUL {
		r.Scope = e.Field("logger_name")
		r.Severity = severitiesOfJava[e.Field("int_loglevel")]
		r.Attributes["code.function.name"] = e.Field("class_name") + "." + e.Field("method_name")
	}
	require.NotZero(t, r.Severity.number, e.Text)
	renamed := renamedContexts
	if e.Name == mapping.EventJUL {
		renamed = renamedContextsOfJava
	}
	for _, context := range []printed.Struct{e.PacketContext, e.StreamContext, e.EventContext} {
		r.expectAttributes(t, context, renamed)
	}
	r.expectAttributes(t, e.Fields, renamedFields[e.Name])
	return r
}

// expectAttributes adds the expected attributes of a scope.
func (r *comparedRecord) expectAttributes(t *testing.T, scope printed.Struct, renamed map[string]string) {
	t.Helper()
	names := map[string]bool{}
	for _, m := range scope {
		names[m.Name] = true
	}
	for _, m := range scope {
		name, other := renamed[m.Name]
		if !other {
			name = m.Name
		}
		// These fields only contain the length or the option of another field.
		length, isLength := strings.CutSuffix(m.Name, "_length")
		tag, isTag := strings.CutSuffix(m.Name, "_tag")
		if name == "" || isLength && names[strings.TrimPrefix(length, "_")] || isTag && names[tag] {
			continue
		}
		if names[m.Name+"_tag"] {
			option := m.Value.(printed.Struct)
			require.Len(t, option, 1, m.Name)
			if m = option[0]; m.Name == "none" {
				continue
			}
		}
		require.NotContains(t, r.Attributes, name)
		r.Attributes[name] = expectedValue(t, m.Name, m.Value)
	}
}

// expectedValue returns the expected value in the form of pdata.
func expectedValue(t *testing.T, name string, v printed.Value) any {
	t.Helper()
	switch v := v.(type) {
	case printed.Text:
		return string(v)
	case printed.Label:
		if v.Name != "" {
			return v.Name
		}
		return expectedValue(t, name, v.Number)
	case printed.List:
		if listsOfBytes[name] {
			var bytes []byte
			for _, element := range v {
				n, err := strconv.ParseUint(string(element.(printed.Number)), 0, 8)
				require.NoError(t, err)
				bytes = append(bytes, byte(n))
			}
			return bytes
		}
		values := []any{}
		for _, element := range v {
			values = append(values, expectedValue(t, name, element))
		}
		return values
	case printed.Number:
		if floatingPoint[name] {
			return v
		}
		if n, err := strconv.ParseInt(string(v), 0, 64); err == nil {
			return n
		}
		n, err := strconv.ParseUint(string(v), 0, 64)
		require.NoError(t, err, name)
		return strconv.FormatUint(n, 10)
	}
	require.Failf(t, "a value that no capture had", "%s = %#v", name, v)
	return nil
}

// compared returns all data of a log record.
func compared(r record) comparedRecord {
	attributes := r.Attributes().AsRaw()
	for name, v := range attributes {
		if f, ok := v.(float64); ok {
			attributes[name] = printed.Number(strconv.FormatFloat(f, 'g', 6, 64))
		}
	}
	resource := r.resource.Attributes()
	return comparedRecord{
		Time: r.Timestamp().AsTime().Format("2006-01-02 15:04:05.000000000"), Event: r.EventName(), Body: r.Body().AsString(),
		Scope: r.scope, Host: textOf(resource, "host.name"), Process: textOf(resource, "process.pid"),
		Severity: severity{r.SeverityNumber(), r.SeverityText()}, Attributes: attributes,
	}
}

// byTime is the order of the comparison.
func byTime(a, b comparedRecord) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
}

func TestLogRecordsOfCapturesEqualTheOutputOfTheReferenceReader(t *testing.T) {
	for name, c := range map[string]struct {
		events  int
		service string
	}{
		"jul1":   {282, "unknown_service:java"},
		"julctx": {18, "unknown_service"},
		"cygok":  {245, "unknown_service:cyg"},
		"cyg1":   {7886, "unknown_service:cyg"},
		"tp1":    {152, "unknown_service:tpdemo"},
		"meta1":  {656, "unknown_service"},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []comparedRecord
			for _, e := range written(t, name, "") {
				want = append(want, expectedOf(t, &e))
			}
			require.Len(t, want, c.events)
			r := newRelay(t, captured(t, name), lttnglive.RelayOptions{})
			b := newBed(t, reading(r.address()))
			instances := map[string]bool{}
			for _, r := range b.awaitRecords(c.events) {
				got = append(got, compared(r))
				assert.Equal(t, name, textOf(r.resource.Attributes(), "lttng.session.name"))
				assert.Equal(t, c.service, textOf(r.resource.Attributes(), "service.name"))
				// Each process is one instance.
				instances[textOf(r.resource.Attributes(), "service.instance.id")] = true
			}
			slices.SortFunc(want, byTime)
			slices.SortFunc(got, byTime)
			processes := map[string]bool{}
			for i := range want {
				require.Equal(t, want[i], got[i], "event %d", i)
				processes[want[i].Process] = true
			}
			assert.Len(t, instances, len(processes))
			assert.EqualValues(t, c.events, b.metric("receiver_lttng_live_events"))
		})
	}
}
