// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
)

func TestEachLevelHasTheSeverityOfItsRange(t *testing.T) {
	for name, test := range map[string]struct {
		of   func(int64) severity
		want map[int64]severity
	}{
		"java.util.logging": {julSeverity, map[int64]severity{
			math.MinInt64: {plog.SeverityNumberTrace, ""}, 300: {plog.SeverityNumberTrace, "FINEST"},
			301: {plog.SeverityNumberDebug, ""}, 400: {plog.SeverityNumberDebug, "FINER"}, 500: {plog.SeverityNumberDebug2, "FINE"},
			700: {plog.SeverityNumberDebug3, "CONFIG"}, 800: {plog.SeverityNumberInfo, "INFO"}, 801: {plog.SeverityNumberWarn, ""},
			900: {plog.SeverityNumberWarn, "WARNING"}, 1000: {plog.SeverityNumberError, "SEVERE"}, math.MaxInt64: {plog.SeverityNumberError, ""},
		}},
		"Log4j 1.x": {log4jSeverity, map[int64]severity{
			0: {plog.SeverityNumberTrace, ""}, 5000: {plog.SeverityNumberTrace, "TRACE"}, 10000: {plog.SeverityNumberDebug, "DEBUG"},
			20000: {plog.SeverityNumberInfo, "INFO"}, 30000: {plog.SeverityNumberWarn, "WARN"}, 40000: {plog.SeverityNumberError, "ERROR"},
			40001: {plog.SeverityNumberFatal, ""}, 50000: {plog.SeverityNumberFatal, "FATAL"},
		}},
		"Log4j 2": {log4j2Severity, map[int64]severity{
			0: {plog.SeverityNumberUnspecified, ""}, 99: {plog.SeverityNumberUnspecified, ""}, 100: {plog.SeverityNumberFatal, "FATAL"},
			199: {plog.SeverityNumberFatal, ""}, 200: {plog.SeverityNumberError, "ERROR"}, 250: {plog.SeverityNumberError, ""},
			300: {plog.SeverityNumberWarn, "WARN"}, 400: {plog.SeverityNumberInfo, "INFO"}, 500: {plog.SeverityNumberDebug, "DEBUG"},
			599: {plog.SeverityNumberDebug, ""}, 600: {plog.SeverityNumberTrace, "TRACE"}, math.MaxInt64: {plog.SeverityNumberTrace, ""},
		}},
		"Python": {pythonSeverity, map[int64]severity{
			9: {plog.SeverityNumberUnspecified, ""}, 10: {plog.SeverityNumberDebug, "DEBUG"}, 13: {plog.SeverityNumberDebug4, ""},
			19: {plog.SeverityNumberDebug4, ""}, 20: {plog.SeverityNumberInfo, "INFO"}, 50: {plog.SeverityNumberFatal, "CRITICAL"},
			54: {plog.SeverityNumberFatal4, ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for level, want := range test.want {
				assert.Equal(t, want, test.of(level), "level %d", level)
			}
		})
	}
}
