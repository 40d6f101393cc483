// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

func results(t testing.TB, list string) []item {
	t.Helper()
	a, _ := readAnswer(t, `{"body":{"results":[`+list+`]},"state":"SUCCEEDED"}`)
	return a.items
}

func TestAnswersThatAreNotOfArthas(t *testing.T) {
	deep := strings.Repeat(`{"body":`, maxNesting) + `1`
	for _, tt := range []struct{ body, problem string }{
		{``, `at byte 0 of the answer: expected an answer of Arthas, received the end of the answer`},
		{`[]`, `at byte 0 of the answer: expected an answer of Arthas, received "[]"`},
		{`{"state":"SUCC`, `at byte 9 of the answer: expected the end of the text, received the end of the answer`},
		{`{"state"`, `at byte 8 of the answer: expected ":", received the end of the answer`},
		{`{"state":"A","state":"B"}`, `at byte 13 of the answer: expected each key once, received "\"state\":\"B\"}"`},
		{`{"state":"A","\u0073tate":"B"}`, `at byte 13 of the answer: expected each key once, received "\"\\u0073tate\":\"B\"}"`},
		{`{"state":1}`, `at byte 9 of the answer: expected a state, received "1}"`},
		{`{"state":"A",}`, `at byte 13 of the answer: expected an element or '}', received "}"`},
		{`{"state":"A"} x`, `at byte 14 of the answer: expected the end of the answer, received "x"`},
		{`{"state":"A` + "\n" + `"}`, `at byte 11 of the answer: expected a text without control characters, received "\n\"}"`},
		{`{"state":"\x"}`, `at byte 10 of the answer: expected an escape of JSON, received "\\x\"}"`},
		{`{"state":"\u12"}`, `at byte 10 of the answer: expected an escape of JSON, received "\\u12\"}"`},
		{`{"body":{"jobId":99999999999999999999}}`, `at byte 17 of the answer: expected the number of a job, received "99999999999999999999}}"`},
		{`{"body":{"jobId":1.5}}`, `at byte 17 of the answer: expected the number of a job, received "1.5}}"`},
		{`{"body":{"jobId":01}}`, `at byte 17 of the answer: expected the number of a job, received "01}}"`},
		{`{"body":{"jobId":-}}`, `at byte 17 of the answer: expected the number of a job, received "-}}"`},
		{`{"body":{"createTime":0}}`, `at byte 22 of the answer: expected an instant in milliseconds, received "0}}"`},
		{`{"body":{"timeExpired":"no"}}`, `at byte 23 of the answer: expected true or false, received "\"no\"}}"`},
		{`{"body":{"results":[{"type":"status"`, `at byte 36 of the answer: expected an element or '}', received the end of the answer`},
		{`{"body":{"results":[{"type":"status","x":nul}]}}`, `at byte 41 of the answer: expected null, received "nul}]}}"`},
		{`{"x":` + strings.Repeat("[", maxNesting), `at byte 1028 of the answer: expected at most 1024 nested objects and arrays, received more`},
		{`{"body":{"results":[` + deep, ``},
		{`{` + strings.Repeat(`"a":1,`, 1) + manyKeys(maxFields) + `}`, `expected at most 64 fields, received more`},
	} {
		c := &Client{}
		_, err := c.decode([]byte(tt.body), held{}, &javamethods.Names{})
		var malformed *MalformedError
		require.ErrorAs(t, err, &malformed, tt.body[:min(80, len(tt.body))])
		assert.Contains(t, err.Error(), tt.problem)
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func TestTooManyValuesAreRefused(t *testing.T) {
	c := &Client{}
	_, err := c.decode([]byte(`{"x":[`+strings.Repeat("1,", maxValues)+`1]}`), held{}, &javamethods.Names{})
	assert.ErrorContains(t, err, "expected at most 1048576 values, received more")
}

func TestUnknownResultsAndFieldsAreCounted(t *testing.T) {
	a, r := readAnswer(t, `{"new":1,"state":"SUCCEEDED","body":{"new":{"a":[1,{}]},"results":[{"type":"new","x":1,"jobId":3},{"type":"version","version":"5","new":null}]}}`)
	assert.EqualValues(t, 4, r.ignored)
	require.Len(t, a.items, 2)
	assert.Nil(t, a.items[0].result)
	assert.Equal(t, &Version{Text: "5"}, a.items[1].result)
}

func TestKeysWithEscapesAreDistinct(t *testing.T) {
	a, _ := readAnswer(t, `{"\u0061":1,"\u0062":2,"\u0073tate":"A"}`)
	assert.Equal(t, "A", a.state)
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("é", maxTextBytes)
	a, r := readAnswer(t, `{"state":"FAILED","message":"`+long+`"}`)
	assert.Equal(t, long[:maxTextBytes], a.message)
	assert.EqualValues(t, 1, r.cut)
	profile := results(t, `{"type":"profiler","executeResult":"`+long+`"}`)[0].result.(*Profiler)
	assert.Equal(t, long, profile.Text, "a profile is not cut")
}

func TestTextsAreRead(t *testing.T) {
	for body, text := range map[string]string{
		`"a\"\\\/\b\f\n\r\tz"`: "a\"\\/\b\f\n\r\tz", `"\u00e9\ud83d\ude00"`: "é😀", `"\ud83d"`: "\ufffd", `"\ud83dx"`: "\ufffdx", `"\ud83d\u0041"`: "\ufffdA",
		"\"\xff\"": "\ufffd", `null`: "", `""`: "",
	} {
		a, _ := readAnswer(t, `{"message":`+body+`}`)
		assert.Equal(t, text, a.message, body)
	}
}

func TestUnitsOfResults(t *testing.T) {
	for _, tt := range []struct {
		name, json string
		want       Result
	}{
		{
			"a monitor has the sum of a cycle in milliseconds",
			`{"type":"monitor","monitorDataList":[{"className":"A","methodName":"m","total":3,"success":2,"failed":1,"cost":1200.7587059999996,"timestamp":"2026-11-22 19:35:44.336936568"}]}`,
			&Monitor{Methods: []MethodStatistics{{Class: "A", Method: "m", Calls: 3, Succeeded: 2, Failed: 1, Sum: Cost{1200758706, true}, Time: Timestamp{fields: time.Date(2026, 11, 22, 19, 35, 44, 336936568, time.UTC)}}}},
		},
		{
			"times before version 4 are instants",
			`{"type":"watch","ts":1795376245536,"cost":1.81E-4,"value":"@Long[1]"}`,
			&Watch{Time: Timestamp{time.UnixMilli(1795376245536).UTC(), true}, Cost: Cost{181, true}, Value: "@Long[1]"},
		},
		{
			"a trace has nanoseconds",
			`{"type":"trace","root":{"threadId":"13","children":[{"type":"method","className":"A","cost":2053174,"minCost":5,"maxCost":7,"totalCost":12,"times":2,"invoking":true,"children":[{"type":"throw","exception":"E","message":"x","lineNumber":7}]}]}}`,
			&Trace{Thread: javamethods.Thread{ID: 13}, Nodes: []TraceNode{
				{Class: "A", CallSite: true, Calls: 2, Last: Cost{2053174, true}, Min: Cost{5, true}, Max: Cost{7, true}, Total: Cost{12, true}},
				{Depth: 1, Exception: "E", Message: "x", Line: 7},
			}},
		},
		{
			"a stack has no duration", `{"type":"stack","cost":0.0,"threadId":12,"stackTrace":[{"className":"A","methodName":"m","lineNumber":-2}]}`,
			&CallStack{Thread: javamethods.Thread{ID: 12}, Frames: []javamethods.Frame{{Class: "A", Method: "m", Line: -2}}},
		},
		{
			"undefined numbers are not known",
			`{"type":"thread","threadStats":[{"id":-1,"name":"C2","time":-1,"cpu":-1}]}`,
			&Threads{Threads: []ThreadState{{ID: -1, Name: "C2"}}},
		},
		{
			"a pool without a limit has none",
			`{"type":"memory","memoryInfo":{"heap":[{"name":"a","used":1,"total":2,"max":-1}],"buffer_pool":[{"name":"b","max":-9223372036854775808}],"nonheap":[{"name":"c","max":5}]}}`,
			&Memory{Pools: []MemoryPool{{Kind: "heap", Name: "a", Used: 1, Committed: 2}, {Kind: "buffer_pool", Name: "b"}, {Kind: "nonheap", Name: "c", Max: 5, HasMax: true}}},
		},
		{
			"a dashboard has seconds, milliseconds and percent",
			`{"type":"dashboard","gcInfos":[{"name":"g1","collectionCount":8,"collectionTime":107}],"runtimeInfo":{"uptime":229,"systemLoadAverage":-1,"timestamp":1795376245536},"threads":[{"id":3,"cpu":12.5,"time":529}]}`,
			&Dashboard{
				Collectors: []GarbageCollector{{Name: "g1", Collections: 8, Time: 107 * time.Millisecond}},
				Runtime:    Runtime{Uptime: 229 * time.Second, Time: time.UnixMilli(1795376245536).UTC()},
				Threads:    []ThreadState{{ID: 3, CPU: 12.5, CPUTime: Cost{529 * time.Millisecond, true}}},
			},
		},
		{"a negative duration is not known", `{"type":"watch","cost":-5}`, &Watch{}},
		{"a missing duration is not known", `{"type":"watch","cost":null}`, &Watch{}},
		{
			"a value that is not drawn is JSON", `{"type":"tt","timeFragment":{"index":1000,"params":["@A[x]",{"object":{"a":[1, 2]},"expand":1}],"returnObj":null,"throwExp":{"x":1}}}`,
			&Records{Calls: []Record{{Index: 1000, Parameters: []string{"@A[x]", `{"a":[1, 2]}`}, Return: "null", Exception: `{"x":1}`}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, results(t, tt.json)[0].result) })
	}
}

func TestWrongValuesMakeOneResultMalformed(t *testing.T) {
	for list, problem := range map[string]string{
		`{"type":"monitor","monitorDataList":[{"total":1,"success":1,"failed":1}]}`: "expected a total of at least the succeeded and failed calls",
		`{"type":"monitor","monitorDataList":[{"total":-1}]}`:                       "expected a number of calls, received \"-1}]}",
		`{"type":"monitor","monitorDataList":[{"timestamp":"yesterday"}]}`:          "expected a time, received \"\\\"yesterday\\\"",
		`{"type":"monitor","monitorDataList":[{"timestamp":-1}]}`:                   "expected a time, received \"-1",
		`{"type":"watch","cost":1e300}`:                                             "expected a duration in milliseconds, received \"1e300",
		`{"type":"watch","cost":1e999}`:                                             "expected a duration in milliseconds, received \"1e999",
		`{"type":"trace","root":{"children":[{"lineNumber":3000000000}]}}`:          "expected the number of a line, received \"3000000000",
		`{"type":"trace","root":{"children":[{"cost":1,"cost":2}]}}`:                "expected each key once",
		`{"type":"dashboard","runtimeInfo":{"uptime":9223372036854775807}}`:         "expected a duration in seconds",
		`{"type":"thread","threadStats":[{"time":9223372036854775807}]}`:            "expected a duration in milliseconds",
		`{"type":"status","statusCode":{}}`:                                         "expected a status code, received \"{}}",
		`{"type":"sc","classNames":[["a"]]}`:                                        "expected a name, received \"[\\\"a\\\"]",
	} {
		items := results(t, `{"type":"version","version":"1"},`+list+`,{"type":"version","version":"2"}`)
		require.Len(t, items, 3)
		assert.Equal(t, &Version{Text: "1"}, items[0].result)
		assert.Equal(t, &Version{Text: "2"}, items[2].result)
		bad, is := items[1].result.(*Malformed)
		require.True(t, is, list)
		assert.ErrorContains(t, bad.Err, problem)
	}
}

func TestADurationWithoutABeginIsNone(t *testing.T) {
	known := func(d time.Duration) Cost { return Cost{d, true} }
	for _, tt := range []struct {
		name  string
		bound CostBound
		cost  Cost
		calls int64
		want  Cost
	}{
		{"as long as the command", CostBound{Elapsed: time.Second}, known(time.Second), 1, known(time.Second)},
		{"longer than the command", CostBound{Elapsed: time.Second}, known(1002 * time.Millisecond), 1, Cost{}},
		{"longer than the command, of several calls", CostBound{Elapsed: time.Second}, known(2 * time.Second), 2, known(2 * time.Second)},
		{"as long as the JVM runs", CostBound{Elapsed: time.Minute, Uptime: time.Hour}, known(time.Hour), 1000, Cost{}},
		{"less than the JVM runs", CostBound{Elapsed: time.Minute, Uptime: time.Hour}, known(59 * time.Minute), 1000, known(59 * time.Minute)},
		{"not known", CostBound{Elapsed: time.Second}, Cost{}, 1, Cost{}},
		{"of no call", CostBound{Elapsed: time.Second}, known(0), 0, known(0)},
	} {
		assert.Equal(t, tt.want, tt.bound.Sum(tt.cost, tt.calls), tt.name)
	}
}

func TestTimesOfAServer(t *testing.T) {
	zone := time.FixedZone("", -3*3600)
	local := Timestamp{fields: time.Date(2026, 11, 22, 19, 0, 0, 5, time.UTC)}
	assert.Equal(t, time.Date(2026, 11, 22, 19, 0, 0, 5, zone), local.In(zone))
	assert.Equal(t, -3*time.Hour, local.Offset(time.Date(2026, 11, 22, 22, 3, 0, 0, time.UTC)))
	instant := Timestamp{time.UnixMilli(1795376245536).UTC(), true}
	assert.Equal(t, instant.fields, instant.In(zone))
	assert.Zero(t, instant.Offset(time.Unix(0, 0)))
	assert.True(t, Timestamp{}.In(zone).IsZero())
	assert.Zero(t, Timestamp{}.Offset(time.Unix(0, 0)))
}

func FuzzAnswer(f *testing.F) {
	for _, exchanges := range captures(f) {
		for i, e := range exchanges {
			if i%5 == 0 && len(e.Answer) < 4096 {
				f.Add([]byte(e.Answer))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &Client{}
		a, err := c.decode(body, held{}, &javamethods.Names{})
		if err == nil && !json.Valid(body) {
			t.Errorf("package json does not accept %q", body)
		}
		j := &Job{session: c.session("s", "c"), limit: -1, number: 1}
		if err == nil {
			j.accept(a.items)
		}
		for _, it := range a.items {
			if m, is := it.result.(*Monitor); is {
				for _, s := range m.Methods {
					if s.Calls < 0 || s.Succeeded+s.Failed > s.Calls || s.Sum.Duration < 0 {
						t.Errorf("wrong statistics: %+v", s)
					}
				}
			}
		}
	})
}

func BenchmarkTraces(b *testing.B) {
	page := captures(b)["41-vanish-fast-job-trace"]
	body := ""
	for _, e := range page {
		if len(e.Answer) > len(body) {
			body = e.Answer
		}
	}
	c, names := &Client{}, &javamethods.Names{}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.decode([]byte(body), held{}, names); err != nil {
			b.Fatal(err)
		}
	}
}

func TestATraceTreeCostsFewAllocations(t *testing.T) {
	node := `{"className":"demo.Shop","cost":2,"invoking":true,"lineNumber":7,"maxCost":2,"methodName":"check","minCost":2,"times":1,"totalCost":2,"type":"method"}`
	body := []byte(`{"body":{"results":[{"type":"trace","root":{"children":[` + strings.Repeat(node+",", 999) + node + `]}}]}}`)
	c, names := &Client{}, &javamethods.Names{}
	allocations := testing.AllocsPerRun(5, func() {
		if _, err := c.decode(body, held{}, names); err != nil {
			t.Error(err)
		}
	})
	assert.LessOrEqual(t, allocations, 1000*0.1+50, "the names are interned")
	assert.Less(t, math.Abs(allocations), 1e6)
}
