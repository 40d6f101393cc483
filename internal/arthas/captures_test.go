// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas/sim/capture"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// captures returns the exchanges of all captures, by the name of the file.
func captures(t testing.TB) map[string][]capture.Exchange {
	t.Helper()
	names, err := filepath.Glob("../../testdata/arthas/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	all := map[string][]capture.Exchange{}
	for _, name := range names {
		exchanges, err := capture.Read(name)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(name), ".txt")] = exchanges
	}
	return all
}

// isJSON reports whether an exchange has a whole answer of the API.
func isJSON(e capture.Exchange) bool { return strings.HasPrefix(e.Answer, "{") && !e.Cut }

func readAnswer(t testing.TB, body string) (answer, *reader) {
	t.Helper()
	r := &reader{data: []byte(body), names: &javamethods.Names{}}
	a := r.answer()
	require.NoError(t, r.err)
	require.Zero(t, r.next())
	return a, r
}

func TestEveryCapturedAnswerIsRead(t *testing.T) {
	answers, results := 0, map[string]int{}
	for name, exchanges := range captures(t) {
		for _, e := range exchanges {
			if !isJSON(e) {
				continue
			}
			answers++
			a, r := readAnswer(t, e.Answer)
			assert.NotEmpty(t, a.state)
			assert.Zero(t, r.cut)
			for _, it := range a.items {
				var reference map[string]any
				require.NoError(t, json.Unmarshal(it.json, &reference))
				results[reference["type"].(string)]++
				assert.EqualValues(t, reference["jobId"], it.job)
				if bad, is := it.result.(*Malformed); is {
					t.Errorf("%s: %s: %v", name, bad.Type, bad.Err)
				}
				compare(t, reference, it.result)
			}
		}
	}
	assert.Equal(t, 294, answers)
	for kind, n := range map[string]int{
		"command": 18, "dashboard": 5, "enhancer": 21, "input_status": 55, "jvm": 2, "memory": 2, "message": 24, "monitor": 39, "profiler": 17,
		"reset": 10, "row_affect": 12, "sc": 3, "session": 2, "sm": 12, "stack": 2, "status": 126, "thread": 5, "trace": 92, "tt": 12,
		"version": 20, "watch": 55, "welcome": 20,
	} {
		assert.Equal(t, n, results[kind], kind)
	}
}

func TestNoFieldOfTheCapturesIsUnknown(t *testing.T) {
	for name, exchanges := range captures(t) {
		for _, e := range exchanges {
			if !isJSON(e) {
				continue
			}
			a, r := readAnswer(t, e.Answer)
			unknown := int64(0)
			for _, it := range a.items {
				if it.result == nil {
					unknown++
				}
			}
			assert.Equal(t, unknown, r.ignored, "%s: %s", name, e.Request)
		}
	}
}

// compare compares a result with what package json reads.
func compare(t *testing.T, reference map[string]any, result Result) {
	t.Helper()
	switch r := result.(type) {
	case *Monitor:
		rows := reference["monitorDataList"].([]any)
		require.Len(t, r.Methods, len(rows))
		for i, row := range rows {
			row, m := row.(map[string]any), r.Methods[i]
			assert.Equal(t, row["className"], m.Class)
			assert.Equal(t, row["methodName"], m.Method)
			assert.EqualValues(t, row["total"], m.Calls)
			assert.EqualValues(t, row["success"], m.Succeeded)
			assert.EqualValues(t, row["failed"], m.Failed)
			compareMillis(t, row["cost"], m.Sum)
			compareTime(t, row["timestamp"], m.Time)
		}
	case *Trace:
		root := reference["root"].(map[string]any)
		assert.Equal(t, root["threadName"], r.Thread.Name)
		assert.EqualValues(t, root["threadId"], r.Thread.ID)
		compareTime(t, root["timestamp"], r.Time)
		assert.Empty(t, compareNodes(t, root["children"].([]any), r.Nodes, 0), "nodes that the reference does not have")
	case *CallStack:
		compareFrames(t, reference["stackTrace"].([]any), r.Frames)
		assert.Equal(t, reference["threadId"], json.Number(jsonOf(t, r.Thread.ID)).String())
		compareTime(t, reference["ts"], r.Time)
	case *Watch:
		assert.Equal(t, reference["value"], r.Value)
		assert.Equal(t, reference["accessPoint"], r.Point)
		compareMillis(t, reference["cost"], r.Cost)
		compareTime(t, reference["ts"], r.Time)
	case *Records:
		calls, _ := reference["timeFragmentList"].([]any)
		if one, is := reference["timeFragment"]; is {
			calls = append(calls, one)
		}
		require.Len(t, r.Calls, len(calls))
		for i, call := range calls {
			call, record := call.(map[string]any), r.Calls[i]
			assert.EqualValues(t, call["index"], record.Index)
			assert.Equal(t, call["throw"], record.Threw)
			assert.Equal(t, call["return"], record.Returned)
			assert.Equal(t, call["returnObj"], record.Return)
			assert.Len(t, record.Parameters, len(call["params"].([]any)))
			compareMillis(t, call["cost"], record.Cost)
		}
	case *Memory:
		comparePools(t, reference["memoryInfo"].(map[string]any), r.Pools)
	case *Dashboard:
		comparePools(t, reference["memoryInfo"].(map[string]any), r.Pools)
		assert.Len(t, r.Threads, len(reference["threads"].([]any)))
		assert.Len(t, r.Collectors, len(reference["gcInfos"].([]any)))
		runtime := reference["runtimeInfo"].(map[string]any)
		assert.EqualValues(t, runtime["timestamp"], r.Runtime.Time.UnixMilli())
		assert.EqualValues(t, runtime["uptime"], r.Runtime.Uptime.Seconds())
	case *Threads:
		stats, _ := reference["threadStats"].([]any)
		busy, _ := reference["busyThreads"].([]any)
		for i, thread := range append(stats, busy...) {
			thread := thread.(map[string]any)
			assert.Equal(t, thread["name"], r.Threads[i].Name)
			assert.EqualValues(t, thread["cpu"], r.Threads[i].CPU)
			assert.EqualValues(t, thread["time"], r.Threads[i].CPUTime.Milliseconds())
			if frames, is := thread["stackTrace"].([]any); is {
				compareFrames(t, frames, r.Threads[i].Frames)
			}
		}
	case *status:
		assert.EqualValues(t, reference["statusCode"], r.code)
	}
}

func compareNodes(t *testing.T, children []any, nodes []TraceNode, depth int32) []TraceNode {
	for _, child := range children {
		child := child.(map[string]any)
		require.NotEmpty(t, nodes)
		node := nodes[0]
		nodes = nodes[1:]
		assert.Equal(t, depth, node.Depth)
		assert.EqualValues(t, child["lineNumber"], node.Line)
		if child["type"] == "throw" {
			assert.Equal(t, child["exception"], node.Exception)
			assert.Equal(t, child["message"], node.Message)
			continue
		}
		assert.Equal(t, child["className"], node.Class)
		assert.Equal(t, child["invoking"], node.CallSite)
		assert.Equal(t, child["throw"] == true, node.Throws)
		assert.EqualValues(t, child["times"], node.Calls)
		for key, cost := range map[string]Cost{"cost": node.Last, "minCost": node.Min, "maxCost": node.Max, "totalCost": node.Total} {
			assert.EqualValues(t, child[key], cost.Nanoseconds())
			assert.True(t, cost.Known)
		}
		below, _ := child["children"].([]any)
		nodes = compareNodes(t, below, nodes, depth+1)
	}
	return nodes
}

func compareFrames(t *testing.T, reference []any, frames []javamethods.Frame) {
	require.Len(t, frames, len(reference))
	for i, frame := range reference {
		frame := frame.(map[string]any)
		file, _ := frame["fileName"].(string)
		assert.Equal(t, javamethods.Frame{Class: frame["className"].(string), Method: frame["methodName"].(string), File: file, Line: int32(frame["lineNumber"].(float64))}, frames[i])
	}
}

func comparePools(t *testing.T, reference map[string]any, pools []MemoryPool) {
	n := 0
	for _, kind := range reference {
		n += len(kind.([]any))
	}
	require.Len(t, pools, n)
	for _, pool := range pools {
		found := false
		for _, r := range reference[pool.Kind].([]any) {
			r := r.(map[string]any)
			if r["name"] == pool.Name {
				found = true
				assert.EqualValues(t, r["used"], pool.Used)
				assert.EqualValues(t, r["total"], pool.Committed)
				assert.Equal(t, r["max"].(float64) >= 0, pool.HasMax)
			}
		}
		assert.True(t, found, pool.Name)
	}
}

func compareMillis(t *testing.T, reference any, cost Cost) {
	assert.True(t, cost.Known)
	assert.InDelta(t, reference.(float64)*1e6, float64(cost.Nanoseconds()), 0.6)
}

func compareTime(t *testing.T, reference any, at Timestamp) {
	assert.Equal(t, reference.(string), at.In(time.UTC).Format("2006-01-02 15:04:05.000000000"))
}

func jsonOf(t *testing.T, v any) string {
	var b bytes.Buffer
	require.NoError(t, json.NewEncoder(&b).Encode(v))
	return strings.TrimSpace(b.String())
}
