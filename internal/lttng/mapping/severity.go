// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import "go.opentelemetry.io/collector/pdata/plog"

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

// julSeverity maps a level of java.util.logging as OpenTelemetry's instrumentation of
// it does: by ranges, each named after its upper end.
func julSeverity(level int64) severity {
	s := severity{text: julNames[level]}
	switch {
	case level <= 300: // FINEST
		s.number = plog.SeverityNumberTrace
	case level <= JULFiner:
		s.number = plog.SeverityNumberDebug
	case level <= 500: // FINE
		s.number = plog.SeverityNumberDebug2
	case level <= 700: // CONFIG
		s.number = plog.SeverityNumberDebug3
	case level <= 800: // INFO
		s.number = plog.SeverityNumberInfo
	case level <= 900: // WARNING
		s.number = plog.SeverityNumberWarn
	default:
		s.number = plog.SeverityNumberError
	}
	return s
}

// JULFiner is the level FINER, which call records have.
const JULFiner = 400

var julNames = map[int64]string{
	300: "FINEST", JULFiner: "FINER", 500: "FINE", 700: "CONFIG", 800: "INFO", 900: "WARNING", 1000: "SEVERE",
}

// log4jSeverity maps a level of Log4j 1.x in the same way.
func log4jSeverity(level int64) severity {
	s := severity{text: log4jNames[level]}
	switch {
	case level <= 5000:
		s.number = plog.SeverityNumberTrace
	case level <= 10000:
		s.number = plog.SeverityNumberDebug
	case level <= 20000:
		s.number = plog.SeverityNumberInfo
	case level <= 30000:
		s.number = plog.SeverityNumberWarn
	case level <= 40000:
		s.number = plog.SeverityNumberError
	default:
		s.number = plog.SeverityNumberFatal
	}
	return s
}

var log4jNames = map[int64]string{
	5000: "TRACE", 10000: "DEBUG", 20000: "INFO", 30000: "WARN", 40000: "ERROR", 50000: "FATAL",
}

// log4j2Severity maps a level of Log4j 2, where smaller numbers are more severe. A
// custom level counts as the next standard level that is more severe, as in Level.getStandardLevel; 0 is
// OFF.
func log4j2Severity(level int64) severity {
	s := severity{text: log4j2Names[level]}
	switch {
	case level < 100:
		s.number = plog.SeverityNumberUnspecified
	case level < 200:
		s.number = plog.SeverityNumberFatal
	case level < 300:
		s.number = plog.SeverityNumberError
	case level < 400:
		s.number = plog.SeverityNumberWarn
	case level < 500:
		s.number = plog.SeverityNumberInfo
	case level < 600:
		s.number = plog.SeverityNumberDebug
	default:
		s.number = plog.SeverityNumberTrace
	}
	return s
}

var log4j2Names = map[int64]string{
	100: "FATAL", 200: "ERROR", 300: "WARN", 400: "INFO", 500: "DEBUG", 600: "TRACE",
}

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
