// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/test/kit"
)

// tracesVariable names a directory with recorded traces.
const tracesVariable = "CALLBRAID_CTF_TRACES"

// maxPrinted bounds the lines of babeltrace2 for a trace: some damaged traces make it print without end.
const maxPrinted = 2_000_000

// maxTried bounds the records of one time that an event is compared with.
const maxTried = 1000

// The built distribution reads each trace below a directory, and babeltrace2 prints it. The records, their values and
// the numbers of discarded events must be equal.
func TestRecordedTracesAreReadAsByBabeltrace2(t *testing.T) { eachRecordedTrace(t, compareTrace) }

// eachRecordedTrace runs a test for each trace below the directory, or skips the test.
func eachRecordedTrace(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	root := os.Getenv(tracesVariable)
	if root == "" {
		t.Skipf("%s does not name a directory with CTF traces to compare with babeltrace2", tracesVariable)
	}
	lttngdata.RequireBabeltrace(t)
	root, err := filepath.EvalSymlinks(root)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == "metadata" {
			name, _ := filepath.Rel(root, filepath.Dir(path)) // path is below root
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, filepath.Dir(path))
			})
		}
		return err
	}))
}

// compareTrace compares the records of one trace.
func compareTrace(t *testing.T, dir string) {
	t.Helper()
	want := printTrace(t, dir)
	got := recordTrace(t, dir)
	if (want.failure != "") != (got.failure != "") {
		t.Errorf("the ends differ:\n  babeltrace2: %s\n  ctf_file:    %s", orComplete(want.failure), orComplete(got.failure))
	}
	if want.discarded != got.discarded {
		t.Errorf("expected %d discarded events, got %d", want.discarded, got.discarded)
	}
	differences := compareRecords(t, want.lines, got.records)
	t.Logf("%d events of babeltrace2, %d records, %d values, %d discarded, ends: %s / %s", len(want.lines), len(got.records), got.values, got.discarded,
		orComplete(want.failure), orComplete(got.failure))
	const shown = 5
	for _, d := range differences[:min(shown, len(differences))] {
		t.Error(d)
	}
	if len(differences) > shown {
		t.Errorf("… and %d more differences", len(differences)-shown)
	}
}

func orComplete(failure string) string {
	if failure == "" {
		return "complete"
	}
	return failure
}

// printedTrace is the output of babeltrace2 for a trace.
type printedTrace struct {
	lines     []string
	discarded int
	// failure is the last cause of an error, or "".
	failure string
}

var (
	printedDiscarded = regexp.MustCompile(`Tracer discarded (\d+) events?`)
	printedCause     = regexp.MustCompile(`(?m)^(?:ERROR|CAUSED BY|ERROR:)[^\n]*\n? *([^\n]*)`)
)

func printTrace(t *testing.T, dir string) (p printedTrace) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "babeltrace2", "--clock-seconds", "--no-delta", "--names=all", "--fields=trace:domain,loglevel", dir)
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines := bufio.NewScanner(stdout)
	for lines.Buffer(nil, 64<<20); len(p.lines) < maxPrinted && lines.Scan(); {
		p.lines = append(p.lines, lines.Text())
	}
	if len(p.lines) == maxPrinted {
		cancel()
	}
	if err := command.Wait(); err != nil {
		p.failure = err.Error()
		if causes := printedCause.FindAllStringSubmatch(stderr.String(), -1); len(causes) > 0 {
			p.failure += ": " + strings.TrimSpace(causes[len(causes)-1][1])
		}
	}
	for _, m := range printedDiscarded.FindAllStringSubmatch(stderr.String(), -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		p.discarded += n
	}
	return p
}

// recordedTrace is the output of the collector for a trace.
type recordedTrace struct {
	records []traceRecord
	// values is the number of attributes of all records.
	values, discarded int
	failure           string
}

// traceRecord has the compared parts of a log record.
type traceRecord struct {
	time             int64
	name, scope      string
	body, severity   string
	resource, values map[string]any
}

var (
	failureInLog = regexp.MustCompile(`(?m)\t(?:error|warn)\t.*?\t((?:A|The|There)[^\t]*)\t.*?"error": "((?:[^"\\]|\\.)*)"`)
	damagedInLog = regexp.MustCompile(`"damaged_packets": [1-9]`)
)

// recordTrace reads a trace by a collector.
func recordTrace(t *testing.T, dir string) (r recordedTrace) {
	t.Helper()
	c := kit.Run(t, fmt.Sprintf(`
receivers:
  ctf_file: {include: [%q], symbol_paths: [], at_end: stop_collector, log_values: {enumeration_numbers: true}}
exporters:
  otlp_json_file/logs: {path: "${env:DIR}/logs.json"}
  otlp_json_file/metrics: {path: "${env:DIR}/metrics.json"}
service:
  pipelines:
    logs: {receivers: [ctf_file], exporters: [otlp_json_file/logs]}
    metrics: {receivers: [ctf_file], exporters: [otlp_json_file/metrics]}
`, dir))
	require.NotContains(t, c.Log(), "panic:")
	if !strings.Contains(c.Log(), "All traces are read") || damagedInLog.MatchString(c.Log()) {
		r.failure = "not complete"
		if m := failureInLog.FindStringSubmatch(c.Log()); m != nil {
			r.failure = m[1] + ": " + m[2]
		}
	}
	eachLogIn(t, filepath.Join(c.Dir, "logs.json"), func(resource pcommon.Resource, scope pcommon.InstrumentationScope, l plog.LogRecord) {
		r.values += l.Attributes().Len()
		r.records = append(r.records, traceRecord{
			int64(l.Timestamp()), l.EventName(), scope.Name(), l.Body().AsString(), l.SeverityText(), resource.Attributes().AsRaw(), l.Attributes().AsRaw(),
		})
	})
	eachLine(t, filepath.Join(c.Dir, "metrics.json"), func(line json.RawMessage) {
		all, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, resource := range all.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() == "lttng.events.discarded" {
						r.discarded = int(m.Sum().DataPoints().At(0).IntValue()) // cumulative: the last one counts
					}
				}
			}
		}
	})
	return r
}

// compareRecords returns the differences of the events and the records. Those of equal times may be in any order. Records
// of several processes are sorted, because they arrive by process.
func compareRecords(t *testing.T, want []string, got []traceRecord) (differences []string) {
	t.Helper()
	slices.SortStableFunc(got, func(a, b traceRecord) int { return cmp.Compare(a.time, b.time) })
	at, used, last := 0, make([]bool, len(got)), int64(math.MinInt64)
	for _, line := range want {
		e, err := readPrinted(line)
		require.NoError(t, err)
		time := e.unixNano()
		if time < last {
			differences = append(differences, "the output of babeltrace2 goes back in time\n  babeltrace2: "+line)
		}
		last = time
		for at < len(got) && (used[at] || got[at].time < time) {
			if !used[at] {
				differences = append(differences, fmt.Sprintf("a record that babeltrace2 does not have: %v", got[at]))
			}
			at++
		}
		first, found := "no record with this time", false
		tried := 0
		for i := at; i < len(got) && got[i].time == time && !found && tried < maxTried; i++ {
			if used[i] {
				continue
			}
			tried++
			d := got[i].differs(&e)
			if found = d == ""; found {
				used[i] = true
			} else if got[i].name == e.name && first[0] == 'n' {
				first = d
			}
		}
		if !found {
			differences = append(differences, first+"\n  babeltrace2: "+line)
		}
	}
	for ; at < len(got); at++ {
		if !used[at] {
			differences = append(differences, fmt.Sprintf("a record that babeltrace2 does not have: %v", got[at]))
		}
	}
	return differences
}

// unixNano returns the event's time, 0 without clock.
func (e *printedEvent) unixNano() int64 {
	seconds, nanoseconds, _ := strings.Cut(strings.TrimPrefix(e.time, "-"), ".")
	s, _ := strconv.ParseInt(seconds, 10, 64) // the expression of a line has checked the digits
	n, _ := strconv.ParseInt(nanoseconds, 10, 64)
	if strings.HasPrefix(e.time, "-") {
		return -s*1e9 - n
	}
	return s*1e9 + n
}

// elsewhere are the attributes in which the receiver writes contexts and fields of loggers: of the resource if they begin
// with resource:.
var elsewhere = map[string][]string{
	"vpid": {"resource:process.pid"}, "pid": {"resource:process.pid"}, "vtid": {"thread.id"}, "tid": {"thread.id"}, "procname": {"thread.name"},
	"msg": {"body:"}, "line": {"code.line.number"}, "file": {"code.file.path"}, "func": {"code.function.name"}, "logger_name": {"scope:"},
	"filename": {"code.file.path"}, "line_number": {"code.line.number"}, "int_threadid": {"thread.id"}, "thread_name": {"thread.name"},
}

// differs returns the first difference of a record and an event, or "".
func (r *traceRecord) differs(e *printedEvent) string {
	if e.name != r.name && (e.name != "<unknown>" || r.name != "") {
		return fmt.Sprintf("expected the event %q, got %q", e.name, r.name)
	}
	if e.level != r.severity {
		return fmt.Sprintf("expected the level %q, got %q", e.level, r.severity)
	}
	seen := map[string]bool{"thread.id": true, "thread.name": true} // of kernel events, by sched_switch
	for _, scope := range []string{"event.fields", "event.context", "stream.event.context", "stream.packet.context"} {
		members := e.scopes[scope]
		for _, m := range members {
			if !r.has(m, seen) && !members.imply(m) {
				return fmt.Sprintf("expected %s.%s = %v, got %v in %v", scope, m.name, m.value, r.values[m.name], r.values)
			}
		}
	}
	for key := range r.values {
		if !seen[key] {
			return fmt.Sprintf("expected no attribute %s, got %v", key, r.values[key])
		}
	}
	return ""
}

// has reports whether the record has the value of a member, and notes where.
func (r *traceRecord) has(m printedMember, seen map[string]bool) bool {
	for _, key := range []string{m.name, "context." + m.name, "context.context." + m.name, "context.context.context." + m.name} {
		v, ok := r.values[key]
		if !ok || seen[key] || !sameValue(m.value, v) {
			continue
		}
		seen[key] = true
		if l, ok := m.value.(printedLabel); ok {
			if n, ok := r.values[key+"_number"]; ok {
				seen[key+"_number"] = true
				return sameValue(l.number, n)
			}
		}
		return true
	}
	for _, key := range elsewhere[m.name] {
		from := r.values
		name, isResource := strings.CutPrefix(key, "resource:")
		switch {
		case isResource:
			from = r.resource
		case key == "body:":
			from = map[string]any{key: r.body}
		case key == "scope:":
			from = map[string]any{key: r.scope}
		}
		if v, ok := from[name]; ok && sameValue(m.value, v) {
			seen[name] = true
			return true
		}
	}
	// An empty structure and a variant without option are no attributes.
	switch v := m.value.(type) {
	case printedStruct:
		return len(v) == 0
	case printedOption:
		s, isStruct := v.value.(printedStruct)
		return v.value == nil || isStruct && len(s) == 0
	}
	return false
}

// imply reports whether a member only has the length of another one, or the tag of a variant whose name begins with
// that of the variant.
func (s printedStruct) imply(m printedMember) bool {
	switch v := m.value.(type) {
	case printedNumber:
		n, err := strconv.ParseUint(string(v), 0, 64)
		return err == nil && slices.ContainsFunc(s, func(o printedMember) bool {
			switch o := o.value.(type) {
			case printedList:
				return uint64(len(o)) == n
			case printedText:
				return uint64(len(o)) <= n
			}
			return false
		})
	case printedLabel:
		return slices.ContainsFunc(s, func(o printedMember) bool {
			_, isVariant := o.value.(printedOption)
			return isVariant && m.name == o.name+"_tag"
		})
	}
	return false
}

// sameValue reports whether a value of a record is equal to a printed one.
func sameValue(want, got any) bool {
	switch want := want.(type) {
	case printedNumber:
		return sameNumber(string(want), got)
	case printedText:
		return got == strings.ToValidUTF8(string(want), "\uFFFD")
	case printedBool:
		return got == bool(want)
	case printedLabel:
		if len(want.labels) == 0 {
			return sameNumber(string(want.number), got)
		}
		label, _ := got.(string)
		return slices.Contains(want.labels, label)
	case printedOption:
		return want.value == nil && got == nil || want.value != nil && sameValue(want.value, got)
	case printedStruct:
		fields, ok := got.(map[string]any)
		return ok && len(fields) == len(want) && !slices.ContainsFunc(want, func(m printedMember) bool {
			v, ok := fields[m.name]
			return !ok || !sameValue(m.value, v)
		})
	case printedList:
		elements, ok := got.([]any)
		if b, isBytes := got.([]byte); isBytes {
			for _, c := range b {
				elements = append(elements, int64(c))
			}
			ok = true
		}
		if !ok || len(elements) != len(want) {
			return false
		}
		for i := range want {
			if !sameValue(want[i], elements[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// sameNumber compares a number. babeltrace2 prints six digits of floating point numbers, as the format %g of C.
func sameNumber(want string, got any) bool {
	switch got := got.(type) {
	case float64:
		text := strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(got, 'g', 6, 64)), "+")
		return text == strings.TrimPrefix(want, "-") && math.IsNaN(got) || text == want
	case int64:
		if n, err := strconv.ParseInt(want, 0, 64); err == nil {
			return n == got
		}
		// A negative byte of a list of bytes, or a negative number that is printed in the base 16.
		n, err := strconv.ParseUint(want, 0, 64)
		return err == nil && int64(n) == got
	case string:
		n, err := strconv.ParseUint(want, 0, 64)
		return err == nil && got == strconv.FormatUint(n, 10)
	}
	return false
}

func TestRecordsWithOtherValuesAreDifferences(t *testing.T) {
	const line = `timestamp = 1.000000002, name = a, stream.packet.context = { cpu_id = 1 }, event.fields = { n = 0x10, f = 1.5, ` +
		`l = [ [0] = 1, [1] = 2 ], l_length = 2, e = ( "A", "B" : container = 3 ), v_tag = ( "x" : container = 0 ), v = { { y = "t" } } }`
	record := func() traceRecord {
		return traceRecord{time: 1e9 + 2, name: "a", values: map[string]any{
			"cpu_id": int64(1), "n": int64(16), "f": 1.5, "l": []byte{1, 2}, "e": "A", "e_number": int64(3), "v": map[string]any{"y": "t"},
		}}
	}
	assert.Empty(t, compareRecords(t, []string{line, line}, []traceRecord{record(), record()}))
	for name, value := range map[string]any{
		"cpu_id": int64(2), "n": int64(17), "f": 1.51, "l": []any{int64(1)}, "e": "C", "e_number": int64(2), "v": map[string]any{"y": "u"}, "more": true,
	} {
		r := record()
		r.values[name] = value
		assert.Len(t, compareRecords(t, []string{line}, []traceRecord{r}), 2, name)
	}
	other := record()
	other.time++
	assert.Len(t, compareRecords(t, []string{line}, []traceRecord{other}), 2)
	assert.Len(t, compareRecords(t, []string{line}, nil), 1)
	assert.Len(t, compareRecords(t, nil, []traceRecord{other}), 1)
}
