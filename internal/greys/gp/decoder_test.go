// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

func TestNumbersMayBeStringsOrNumbers(t *testing.T) {
	row := func(m javamethods.MethodStatistics) []javamethods.Reply {
		m.Time, m.Class, m.Method = time.UnixMilli(1443108198994).UTC(), "a.B", "c"
		return []javamethods.Reply{&javamethods.Statistics{Methods: []javamethods.MethodStatistics{m}}}
	}
	for name, tt := range map[string]struct {
		members string
		want    javamethods.MethodStatistics
	}{
		"texts":                  {`"total":"7","success":"5","fail":"2","rt":"500"`, javamethods.MethodStatistics{Calls: 7, Succeeded: 5, Failed: 2, Mean: 500 * time.Millisecond, HasMean: true}},
		"numbers":                {`"total":7,"success":5,"fail":2,"rt":500`, javamethods.MethodStatistics{Calls: 7, Succeeded: 5, Failed: 2, Mean: 500 * time.Millisecond, HasMean: true}},
		"both":                   {`"total":7,"success":"5","fail":2,"rt":"0.25"`, javamethods.MethodStatistics{Calls: 7, Succeeded: 5, Failed: 2, Mean: 250 * time.Microsecond, HasMean: true}},
		"fractions as console's": {`"total":"07","success":"5","fail":"2","rt":"08.19"`, javamethods.MethodStatistics{Calls: 7, Succeeded: 5, Failed: 2, Mean: 8190 * time.Microsecond, HasMean: true}},
		"no mean":                {`"total":7,"success":5,"fail":2`, javamethods.MethodStatistics{Calls: 7, Succeeded: 5, Failed: 2}},
		"a mean of no calls":     {`"total":0,"success":0,"fail":0,"rt":"0"`, javamethods.MethodStatistics{}},
		"NaN, as Java writes it": {`"total":1,"success":1,"fail":0,"rt":"NaN","fail-rate":"NaN"`, javamethods.MethodStatistics{Calls: 1, Succeeded: 1}},
		"null":                   {`"total":1,"success":1,"fail":0,"rt":null`, javamethods.MethodStatistics{Calls: 1, Succeeded: 1}},
		"unknown members":        {`"x":{"total":[9]},"total":1,"success":1,"fail":0`, javamethods.MethodStatistics{Calls: 1, Succeeded: 1}},
		"keys with escapes":      {`"\u0074otal":1,"success":1,"fail":0`, javamethods.MethodStatistics{Calls: 1, Succeeded: 1}},
		"the largest":            {`"total":9007199254740991,"success":0,"fail":9007199254740991,"rt":9223372036854`, javamethods.MethodStatistics{Calls: maxCount, Failed: maxCount, Mean: time.Duration(maxMillis) * time.Millisecond, HasMean: true}},
	} {
		got, tolerated, err := decoded(javamethods.MonitorCommand{}, []byte(`{"items":[{"timestamp":1443108198994,"class":"a.B","method":"c",`+tt.members+`}]}`))
		require.NoError(t, err, name)
		assert.False(t, tolerated, name)
		assert.Equal(t, row(tt.want), got, name)
	}
}

func TestBooleansMayBeStringsNumbersOrBooleans(t *testing.T) {
	for text, want := range map[string]bool{`"true"`: true, "true": true, "1": true, `"1"`: true, `"false"`: false, "false": false, "0": false} {
		got, _, err := decoded(javamethods.StackCommand{}, []byte(`{"is-daemon":`+text+`,"items":[]}`))
		require.NoError(t, err, text)
		assert.Equal(t, []javamethods.Reply{&javamethods.CallStack{Thread: javamethods.Thread{Daemon: want}}}, got, text)
	}
}

func TestInvalidValuesAreErrors(t *testing.T) {
	item := func(members string) string { return `{"items":[{` + members + `}]}` }
	full := `"timestamp":"1","class":"a","method":"b","total":"1","success":"1","fail":"0"`
	record := `"index":"1","timestamp":"2015-09-27 10:17:25","cost":"1","classname":"a","method-name":"b"`
	for _, tt := range []struct {
		command javamethods.Command
		data    string
		message string
	}{
		{javamethods.VersionCommand{}, `{"version":{}}`, "byte 11: expected a string, a number or a boolean, got '{'"},
		{javamethods.MonitorCommand{}, item(strings.Replace(full, `"a"`, `""`, 1)), "byte 10: expected class and method, got an object without it"},
		{javamethods.MonitorCommand{}, item(strings.Replace(full, "timestamp", "x", 1)), "expected timestamp"},
		{javamethods.MonitorCommand{}, item(strings.Replace(full, "fail", "x", 1)), "expected total, success and fail"},
		{javamethods.MonitorCommand{}, item(full + `,"total":-1`), `expected a whole number from 0 to 9007199254740991, got "-1"`},
		{javamethods.MonitorCommand{}, item(full + `,"total":1.5`), `expected a whole number`},
		{javamethods.MonitorCommand{}, item(full + `,"total":9007199254740992`), `expected a whole number`},
		{javamethods.MonitorCommand{}, item(full + `,"total":true`), `expected a whole number from 0 to 9007199254740991, got "true"`},
		{javamethods.MonitorCommand{}, item(full + `,"total":null`), `expected a whole number from 0 to 9007199254740991, got ""`},
		{javamethods.MonitorCommand{}, item(full + `,"total":"` + strings.Repeat("1", 100) + `"`), `got "1111111111111111111111111111111111111111"...`},
		{javamethods.MonitorCommand{}, item(full + `,"fail":1`), "byte 10: expected success and fail that are at most total together, got 1 and 1 of 1"},
		{javamethods.MonitorCommand{}, item(full + `,"success":0,"fail":5`), "got 0 and 5 of 1"},
		{javamethods.MonitorCommand{}, item(full + `,"timestamp":9223372036855`), "expected a whole number from 0 to 9223372036854"},
		{javamethods.MonitorCommand{}, item(full + `,"rt":-1`), `expected milliseconds, got "-1"`},
		{javamethods.MonitorCommand{}, item(full + `,"rt":1e300`), "expected milliseconds"},
		{javamethods.MonitorCommand{}, item(full + `,"rt":"Infinity"`), "expected milliseconds"},
		{javamethods.MonitorCommand{}, item(full + `,"rt":"9223372036855.5"`), "expected milliseconds"},
		{javamethods.SessionsCommand{}, `{"pid":"1","items":[{"session-id":"9999999999999999999"}]}`, "expected a whole number from -9223372036854775808 to 9223372036854775807"},
		{javamethods.MonitorCommand{}, `{"items":[[]]}`, "byte 10: expected '{', got '['"},
		{javamethods.ResetCommand{}, `{"affect":{"row-count":"x"}}`, `expected a whole number from 0 to 9007199254740991, got "x"`},
		{javamethods.SessionsCommand{}, `{"items":[]}`, "byte 0: expected pid, got an object without it"},
		{javamethods.SessionsCommand{}, `{"pid":"1","items":[{}]}`, "byte 20: expected session-id"},
		{javamethods.StackCommand{}, `{"thread-id":"main"}`, `expected a whole number from 0`},
		{javamethods.StackCommand{}, `{"thread-id":"0x8000000000000000"}`, `expected a whole number from 0`},
		{javamethods.StackCommand{}, `{"is-daemon":"yes"}`, `expected true or false, got "yes"`},
		{javamethods.StackCommand{}, item(`"classname":"a"`), "expected classname and method-name"},
		{javamethods.StackCommand{}, item(`"line-number":"2147483648"`), "expected a whole number from -2147483648 to 2147483647"},
		{javamethods.RecordsCommand{}, item(strings.Replace(record, "index", "x", 1)), "expected index, timestamp and cost"},
		{javamethods.RecordsCommand{}, item(strings.Replace(record, "cost", "x", 1)), "expected index, timestamp and cost"},
		{javamethods.RecordsCommand{}, item(strings.Replace(record, "classname", "x", 1)), "expected classname and method-name"},
		{javamethods.RecordsCommand{}, item(record + `,"timestamp":"2015-09-27"`), `expected a time such as 2006-01-02 15:04:05, got "2015-09-27"`},
		{javamethods.RecordsCommand{}, item(record + `,"timestamp":"1969-12-31 23:59:59"`), "expected a time"},
		{javamethods.RecordsCommand{}, item(record + `,"timestamp":"2262-04-12 00:00:00"`), "expected a time"},
		{javamethods.RecordDetailCommand{}, `{"index":"1"}`, "byte 0: expected index, timestamp and cost"},
		{javamethods.ClassesCommand{}, item(`"detail":{}`), "expected classname"},
		{javamethods.ClassesCommand{}, item(`"classname":"a","fields":[{}]`), "expected name"},
		{javamethods.ClassesCommand{}, item(`"classname":"a","detail":{"is-enum":7}`), `expected true or false, got "7"`},
		{javamethods.MethodsCommand{}, item(`"methods":[]`), "expected classname"},
		{javamethods.MethodsCommand{}, item(`"classname":"a","methods":[{}]`), "expected method-name"},
		{javamethods.RecordDetailCommand{}, `{"parameters":[` + strings.Repeat(`"",`, 256) + `""]}`, "expected at most 255 elements, got one more"},
		{javamethods.ClassesCommand{}, item(`"classname":"a","detail":{"interfaces":[` + strings.Repeat(`"",`, 65535) + `""]}`), "expected at most 65535 elements"},
		{javamethods.ClassesCommand{}, item(`"classname":"a","fields":[` + strings.Repeat(`{"name":"b"},`, 65535) + `{"name":"b"}]`), "expected at most 65535 elements"},
		{javamethods.MethodsCommand{}, item(`"classname":"a","methods":[` + strings.Repeat(`{"method-name":"b"},`, 65535) + `{"method-name":"b"}]`), "expected at most 65535 elements"},
	} {
		replies, _, err := decoded(tt.command, []byte(tt.data))
		var wrong *ProtocolError
		require.ErrorAs(t, err, &wrong, tt.data)
		assert.ErrorContains(t, err, tt.message, tt.data)
		assert.NotContains(t, err.Error(), "YAML", "it is JSON")
		assert.Empty(t, replies, "invalid data have no answers")
	}
}

func TestOnlyShortDataAreReadTolerantly(t *testing.T) {
	command := javamethods.MonitorCommand{}
	sloppy := `{"items":[],}`
	d := newDecoder(time.UTC, len(sloppy), new(sync.Mutex))
	tolerated, err := d.decode(command, []byte(sloppy), func(javamethods.Reply) {})
	require.NoError(t, err)
	assert.True(t, tolerated)
	_, err = d.decode(command, []byte(sloppy+" "), func(javamethods.Reply) {})
	require.ErrorContains(t, err, "byte 12: expected an element behind the comma")
}

func TestInvalidJSONIsReadAsYAML(t *testing.T) {
	for text, want := range map[string]string{
		`{'a':'b','c':[1,true,null,],}`:   `{"a":"b","c":[1,true,null]}`,
		`{"a":'{"b":"\u003c","c":-2}'}`:   `{"a":"{\"b\":\"\\u003c\",\"c\":-2}"}`,
		"{\n\t'a'\t:\n\t['b',\n\t],\n}":   `{"a":["b"]}`,
		"{a: b, 1: 0x10, c: 012, d: .5}":  `{"a":"b","1":"0x10","c":"012","d":".5"}`,
		"{a: &x [1], b: *x}":              `{"a":[1],"b":null}`,
		`{a: 'it''s', b: "\x01", c: '\'}`: `{"a":"it's","b":"\u0001","c":"\\"}`,
	} {
		got := tolerate([]byte(text))
		assert.Equal(t, want, string(got), text)
		assert.NoError(t, scanned(got))
	}
	for _, text := range []string{"", " ", "# c", "{", "'", "\xff", "{'a':'b}", "\x00", "[" + strings.Repeat("[", 100_000), "a: b: c", "%", "!!binary x: ["} {
		assert.Nil(t, tolerate([]byte(text)), "%.20q", text)
	}
}

func TestAffectedIsDeliveredWhenItChanges(t *testing.T) {
	d := newDecoder(time.UTC, DefaultMaxTolerated, new(sync.Mutex))
	var got []javamethods.Reply
	for _, classes := range []string{"1", "1", "2", "2", "1"} {
		_, err := d.decode(javamethods.MonitorCommand{}, []byte(`{"affect":{"class-count":`+classes+`}}`), func(r javamethods.Reply) { got = append(got, kept(r)) })
		require.NoError(t, err)
	}
	assert.Equal(t, []javamethods.Reply{&javamethods.Affected{Classes: 1}, &javamethods.Affected{Classes: 2}, &javamethods.Affected{Classes: 1}}, got)
}

func TestReusedItemsAreCleared(t *testing.T) {
	items := make([]string, 3, 10)
	items[2] = "x"
	again := reused(items)
	assert.Empty(t, again)
	assert.Equal(t, 10, cap(again))
	assert.Empty(t, items[2], "the item is cleared")
	assert.Zero(t, cap(reused(make([]string, keptItems+1))), "a very large slice is released")
}

func TestHostileDataNeedLimitedMemory(t *testing.T) {
	const size, most = 3 << 20, 6
	for name, tt := range map[string]struct {
		command javamethods.Command
		begin   string
		item    string
	}{
		"methods in a cycle": {javamethods.MonitorCommand{}, `{"items":[`, `{"timestamp":1,"class":"a","method":"b","total":0,"success":0,"fail":0},`},
		"methods of nothing": {javamethods.MonitorCommand{}, `{"items":[`, `{},`},
		"sessions":           {javamethods.SessionsCommand{}, `{"items":[`, `{"session-id":1},`},
		"frames":             {javamethods.StackCommand{}, `{"items":[`, `{"classname":"a","method-name":"b"},`},
		"records":            {javamethods.RecordsCommand{}, `{"items":[`, `{"index":1,"timestamp":"2015-09-27 10:17:25","cost":1,"classname":"a","method-name":"b"},`},
		"parameters":         {javamethods.RecordDetailCommand{}, `{"parameters":[`, `"",`},
		"classes":            {javamethods.ClassesCommand{}, `{"items":[`, `{"classname":"a"},`},
		"fields":             {javamethods.ClassesCommand{}, `{"items":[{"classname":"a","fields":[`, `{"name":"a"},`},
		"methods":            {javamethods.MethodsCommand{}, `{"items":[{"methods":[`, `{"method-name":"a"},`},
		"skipped members":    {javamethods.MonitorCommand{}, `{"x":[`, `{},`},
	} {
		data := []byte(tt.begin + strings.Repeat(tt.item, size/len(tt.item)))
		d := newDecoder(time.UTC, 0, new(sync.Mutex))
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := d.decode(tt.command, data, func(javamethods.Reply) {})
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		times := float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / size
		assert.Less(t, times, float64(most), name)
		t.Logf("%s: %.1f times the data", name, times)
		runtime.KeepAlive(d)
		runtime.KeepAlive(data)
	}
}
