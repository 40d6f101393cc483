// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"math"

	"go.opentelemetry.io/collector/pdata/plog"
)

// severity is the severity of a log record: OpenTelemetry's number, and the source's name of the
// level; empty if the level has no name.
type severity struct {
	number plog.SeverityNumber
	text   string
}

// tracepointSeverities are the log levels of LTTng-UST's tracepoints, by their number in the
// metadata: the levels of syslog, as OpenTelemetry's log data model maps them, and eight kinds of
// debugging.
var tracepointSeverities = [...]severity{
	{plog.SeverityNumberFatal, "TRACE_EMERG"},
	{plog.SeverityNumberError3, "TRACE_ALERT"},
	{plog.SeverityNumberError2, "TRACE_CRIT"},
	{plog.SeverityNumberError, "TRACE_ERR"},
	{plog.SeverityNumberWarn, "TRACE_WARNING"},
	{plog.SeverityNumberInfo2, "TRACE_NOTICE"},
	{plog.SeverityNumberInfo, "TRACE_INFO"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG_SYSTEM"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG_PROGRAM"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG_PROCESS"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG_MODULE"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG_UNIT"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG_FUNCTION"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG_LINE"},
	{plog.SeverityNumberDebug, "TRACE_DEBUG"},
}

func tracepointSeverity(level int64) severity {
	if level >= 0 && level < int64(len(tracepointSeverities)) {
		return tracepointSeverities[level]
	}
	return severity{}
}

// levelRange is a range of levels with the same severity: up to most, and above the previous range.
type levelRange struct {
	most   int64
	number plog.SeverityNumber
}

// numberOf returns the severity of a level. The last range has every level.
func numberOf(level int64, ranges []levelRange) plog.SeverityNumber {
	i := 0
	for level > ranges[i].most {
		i++
	}
	return ranges[i].number
}

// JULFiner is the level FINER of call records.
const JULFiner = 400

// julSeverity maps a level of java.util.logging as OpenTelemetry's instrumentation does: by ranges, each
// named after its upper end.
func julSeverity(level int64) severity { return severity{numberOf(level, julRanges), julNames[level]} }

var (
	julRanges = []levelRange{
		{300, plog.SeverityNumberTrace}, {JULFiner, plog.SeverityNumberDebug}, {500, plog.SeverityNumberDebug2},
		{700, plog.SeverityNumberDebug3}, {800, plog.SeverityNumberInfo}, {900, plog.SeverityNumberWarn},
		{math.MaxInt64, plog.SeverityNumberError},
	}
	julNames = map[int64]string{
		300: "FINEST", JULFiner: "FINER", 500: "FINE", 700: "CONFIG", 800: "INFO", 900: "WARNING", 1000: "SEVERE",
	}
)

// log4jSeverity maps a level of Log4j 1.x in the same way.
func log4jSeverity(level int64) severity {
	return severity{numberOf(level, log4jRanges), log4jNames[level]}
}

var (
	log4jRanges = []levelRange{
		{5000, plog.SeverityNumberTrace}, {10000, plog.SeverityNumberDebug}, {20000, plog.SeverityNumberInfo},
		{30000, plog.SeverityNumberWarn}, {40000, plog.SeverityNumberError}, {math.MaxInt64, plog.SeverityNumberFatal},
	}
	log4jNames = map[int64]string{
		5000: "TRACE", 10000: "DEBUG", 20000: "INFO", 30000: "WARN", 40000: "ERROR", 50000: "FATAL",
	}
)

// log4j2Severity maps a level of Log4j 2 to a severity. Smaller numbers are more severe. A custom level has the
// severity of the next standard level that is more severe, as in Level.getStandardLevel. 0 is OFF.
func log4j2Severity(level int64) severity {
	return severity{numberOf(level, log4j2Ranges), log4j2Names[level]}
}

var (
	log4j2Ranges = []levelRange{
		{99, plog.SeverityNumberUnspecified}, {199, plog.SeverityNumberFatal}, {299, plog.SeverityNumberError},
		{399, plog.SeverityNumberWarn}, {499, plog.SeverityNumberInfo}, {599, plog.SeverityNumberDebug},
		{math.MaxInt64, plog.SeverityNumberTrace},
	}
	log4j2Names = map[int64]string{
		100: "FATAL", 200: "ERROR", 300: "WARN", 400: "INFO", 500: "DEBUG", 600: "TRACE",
	}
)

// pythonSeverity maps a level of Python's logging as OpenTelemetry's SDK does: four
// numbers from each standard level on.
func pythonSeverity(level int64) severity {
	s := severity{text: pythonNames[level]}
	switch {
	case level < 10:
		s.number = plog.SeverityNumberUnspecified
	case level > 53:
		s.number = plog.SeverityNumberFatal4
	default:
		// DEBUG, INFO, WARN, ERROR and FATAL have four numbers each, from 5 on.
		s.number = plog.SeverityNumberDebug + plog.SeverityNumber(4*(level/10-1)+min(level%10, 3))
	}
	return s
}

var pythonNames = map[int64]string{
	10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "CRITICAL",
}
