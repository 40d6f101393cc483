// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// sample returns a sample of the document.
func sample(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "document", name+".json"))
	require.NoError(tb, err)
	return data
}

func pattern(tb testing.TB, text string) javamethods.Pattern {
	tb.Helper()
	p, err := javamethods.NewPattern(text)
	require.NoError(tb, err)
	return p
}

// documented is a command with a sample in the document, and the sample's content.
type documented struct {
	sample      string
	requestType RequestType
	command     javamethods.Command
	// command is the command in the sample of the request.
	replies []javamethods.Reply
	sloppy  bool
}

// A person has checked allOfTheDocument against the document.
func allOfTheDocument(tb testing.TB) []documented {
	anyMethod := func(class string) javamethods.Target {
		return javamethods.Target{Class: pattern(tb, class), Method: pattern(tb, "*")}
	}
	const utils = "com.github.ompc.greys.core.util.GaStringUtils"
	return []documented{
		{"version", 0x02, javamethods.VersionCommand{}, []javamethods.Reply{&javamethods.Version{Text: "1.8.0.0"}}, false},
		{
			"monitor", 0x03,
			javamethods.MonitorCommand{Target: javamethods.Target{Class: pattern(tb, "com.taobao.*"), Method: pattern(tb, "query*")}, Cycle: 2 * time.Minute},
			[]javamethods.Reply{&javamethods.Affected{Classes: 100, Methods: 50}, &javamethods.Statistics{Methods: []javamethods.MethodStatistics{{
				Time:  time.Date(2015, 9, 24, 15, 23, 18, 994e6, time.UTC),
				Class: "org.apache.commons.lang3.StringUtils", Method: "isNotBlank",
				Calls: 100, Succeeded: 90, Failed: 10, Mean: 500 * time.Millisecond, HasMean: true,
			}}}}, false,
		},
		{"reset", 0x04, javamethods.ResetCommand{Class: pattern(tb, "com.taobao.*")}, []javamethods.Reply{&javamethods.Affected{Rows: 100}}, false},
		{"classes", 0x05, javamethods.ClassesCommand{Class: pattern(tb, "com.alibaba.AgentTest"), Fields: true}, []javamethods.Reply{&documentedClass}, true},
		{"methods", 0x06, javamethods.MethodsCommand{Target: anyMethod(utils)}, []javamethods.Reply{
			&javamethods.Method{Class: utils, Name: "tranModifier", Modifier: "5", Parameters: []string{"int"}, Return: "java.lang.String"},
			&javamethods.Method{Class: utils, Name: "getLogo", Modifier: "5", Exceptions: []string{"java.io.IOException"}, Return: "java.lang.String"},
		}, false},
		{"session", 0x07, javamethods.SessionsCommand{}, []javamethods.Reply{&javamethods.Sessions{ProcessID: 79321, Sessions: []javamethods.Session{
			{ID: 1, Duration: 5 * time.Minute, Charset: "utf-8", From: "127.0.0.1:64702", To: "127.0.0.1:3658"},
		}}}, false},
		{"stack", 0x08, javamethods.StackCommand{Target: anyMethod(utils)}, []javamethods.Reply{&documentedStack}, false},
		{"records", 0x09, javamethods.RecordsCommand{}, []javamethods.Reply{
			&javamethods.Record{
				Index: 1000, Time: time.Date(2015, 9, 27, 10, 17, 25, 0, time.UTC), Cost: time.Millisecond, Returned: true,
				Object: "0x4b1210ee", Class: "com.alibaba.AgentTest", Method: "print",
			},
			&javamethods.Record{
				Index: 1001, Time: time.Date(2015, 9, 27, 10, 17, 26, 0, time.UTC), Cost: 2 * time.Millisecond, Returned: true,
				Object: "0x4b1210ee", Class: "com.alibaba.AgentTest", Method: "print",
			},
		}, false},
		{"record-detail", 0x0a, javamethods.RecordDetailCommand{Index: 1003}, []javamethods.Reply{&javamethods.RecordDetail{
			Record: javamethods.Record{
				Index: 1003, Time: time.Date(2015, 9, 27, 22, 22, 56, 0, time.UTC), Cost: time.Millisecond, Threw: true,
				Object: "0x4b1210ee", Class: "com.alibaba.AgentTest", Method: "printAddress",
			},
			Parameters: []string{`{"addressId":20808,"addressName":"ADDRESS","avg":2.0}`, "null"},
			Exception:  documentedException,
		}}, true},
	}
}

var documentedClass = javamethods.Class{
	Name: "com.alibaba.AgentTest", CodeSource: "/Users/vlinux/temp/agent-test/target/", Modifier: "1",
	Annotations: []string{"com.github.ompc.greys.core.command.annotation.Cmd"},
	Interfaces:  []string{"com.github.ompc.greys.core.command.Command"},
	Super:       "java.lang.Object",
	Loaders: []string{
		"com.github.ompc.greys.agent.GreysClassLoader@7d64a7f2",
		"sun.misc.Launcher$AppClassLoader@58644d46",
		"sun.misc.Launcher$ExtClassLoader@7ea987ac",
	},
	Fields: []javamethods.Field{
		{Modifier: "5", Type: "java.lang.String", Name: "DEFAULT_PROMPT", Value: "ga?>"},
		{Modifier: "5", Type: "java.lang.String", Name: "ABORT_MSG", Value: "Press Ctrl+D to abort."},
		{Modifier: "5", Type: "java.lang.String", Name: "SPY_CLASSNAME", Value: "com.github.ompc.greys.agent.Spy"},
	},
}

var documentedStack = javamethods.CallStack{
	Thread: javamethods.Thread{Name: "main", ID: 1, Priority: 5},
	Frames: []javamethods.Frame{
		{Class: "com.alibaba.AgentTest", Method: "print", File: "AgentTest.java", Line: -1},
		{Class: "sun.reflect.NativeConstructorAccessorImpl", Method: "newInstance0", File: "NativeConstructorAccessorImpl.java", Line: -2},
		{Class: "sun.reflect.NativeConstructorAccessorImpl", Method: "newInstance", File: "NativeConstructorAccessorImpl.java", Line: 62},
		{Class: "sun.reflect.DelegatingConstructorAccessorImpl", Method: "newInstance", File: "DelegatingConstructorAccessorImpl.java", Line: 45},
		{Class: "java.lang.reflect.Constructor", Method: "newInstance", File: "Constructor.java", Line: 408},
		{Class: "java.lang.Class", Method: "newInstance", File: "Class.java", Line: 438},
		{Class: "com.alibaba.AgentTest", Method: "main", File: "AgentTest.java", Line: 122},
	},
}

const documentedException = `{"detailMessage":"test","stackTrace":[` +
	`{"declaringClass":"com.alibaba.AgentTest","methodName":"printAddress","fileName":"AgentTest.java","lineNumber":86},` +
	`{"declaringClass":"com.alibaba.AgentTest","methodName":"\u003cinit\u003e","fileName":"AgentTest.java","lineNumber":68},` +
	`{"declaringClass":"sun.reflect.NativeConstructorAccessorImpl","methodName":"newInstance0","fileName":"NativeConstructorAccessorImpl.java","lineNumber":-2},` +
	`{"declaringClass":"sun.reflect.NativeConstructorAccessorImpl","methodName":"newInstance","fileName":"NativeConstructorAccessorImpl.java","lineNumber":62},` +
	`{"declaringClass":"sun.reflect.DelegatingConstructorAccessorImpl","methodName":"newInstance","fileName":"DelegatingConstructorAccessorImpl.java","lineNumber":45},` +
	`{"declaringClass":"java.lang.reflect.Constructor","methodName":"newInstance","fileName":"Constructor.java","lineNumber":408},` +
	`{"declaringClass":"java.lang.Class","methodName":"newInstance","fileName":"Class.java","lineNumber":438},` +
	`{"declaringClass":"com.alibaba.AgentTest","methodName":"main","fileName":"AgentTest.java","lineNumber":122}],"suppressedExceptions":[]}`

func TestRequestsEqualTheDocumentsSamples(t *testing.T) {
	for _, d := range allOfTheDocument(t) {
		want := sample(t, d.sample+".request")
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, want))
		requestType, data, err := AppendCommand(nil, d.command, UsualCodes())
		require.NoError(t, err)
		assert.Equal(t, compact.String(), string(data))
		assert.Equal(t, d.requestType, requestType)

		command, err := ParseCommand(Request{Type: d.requestType, Data: want}, UsualCodes())
		require.NoError(t, err)
		assert.Equal(t, d.command, command)
	}
}

func TestAnIncompleteCommandHasNoRequest(t *testing.T) {
	whole := javamethods.Target{Class: pattern(t, "a"), Method: pattern(t, "b")}
	for _, command := range []javamethods.Command{
		javamethods.MonitorCommand{Target: whole},
		javamethods.MonitorCommand{Target: whole, Cycle: 1500 * time.Millisecond},
		javamethods.MonitorCommand{Target: javamethods.Target{Class: pattern(t, "a")}, Cycle: time.Second},
		javamethods.StackCommand{Target: javamethods.Target{Method: pattern(t, "a")}},
		javamethods.MethodsCommand{}, javamethods.ClassesCommand{}, javamethods.ResetCommand{},
	} {
		_, _, err := AppendCommand(nil, command, UsualCodes())
		require.Error(t, err, "%#v", command)
		assert.NotErrorIs(t, err, javamethods.ErrUnsupported)
	}
	_, data, err := AppendCommand(nil, javamethods.StackCommand{Target: whole, Limit: 17}, UsualCodes())
	require.NoError(t, err)
	assert.Contains(t, string(data), `"limit":"17"`)
	_, data, err = AppendCommand(nil, javamethods.ClassesCommand{Class: pattern(t, "a")}, UsualCodes())
	require.NoError(t, err)
	assert.Contains(t, string(data), `"is-display-fields":"false"`, "values of fields are read only on request")
}

func TestIncompleteRequestsAreErrors(t *testing.T) {
	for message, r := range map[string]Request{
		"expected cycle, got a request without it":                          {Type: Monitor, Data: []byte(`{"class-pattern":"a","method-pattern":"b"}`)},
		"expected class-pattern and method-pattern":                         {Type: Methods, Data: []byte(`{"class-pattern":"a"}`)},
		"expected class-pattern, got a request without it":                  {Type: Reset},
		"expected index, got a request without it":                          {Type: 10},
		"expected a pattern: pattern is empty":                              {Type: Classes, Data: []byte(`{"class-pattern":""}`)},
		`has ' ' at byte 1: the server would not read it as one argument, `: {Type: Classes, Data: []byte(`{"class-pattern":"a b"}`)},
		"expected a whole number from 1 to 2147483647":                      {Type: Monitor, Data: []byte(`{"cycle":"0"}`)},
		"expected a whole number from -1 to 2147483647":                     {Type: 8, Data: []byte(`{"limit":"-2"}`)},
		"request type 0x000b: the server does not support it":               {Type: 11, Data: []byte("?")},
	} {
		_, err := ParseCommand(r, UsualCodes())
		require.ErrorContains(t, err, message)
	}
	_, err := ParseCommand(Request{Type: 7}, Codes{})
	require.ErrorIs(t, err, javamethods.ErrUnsupported, "it has no code")
	command, err := ParseCommand(Request{Type: Reset, Data: []byte(`{'class-pattern':'a',}`)}, Codes{})
	require.NoError(t, err, "requests may be sloppy, too")
	assert.Equal(t, javamethods.ResetCommand{Class: pattern(t, "a")}, command)
}

func TestEachCodeBelongsToOneRequest(t *testing.T) {
	require.NoError(t, UsualCodes().Check())
	require.NoError(t, Codes{}.Check())
	require.NoError(t, Codes{Stack: 0xffff}.Check())
	require.ErrorContains(t, Codes{Stack: Heartbeat}.Check(), "code 0x0001 of stack is also the code of the heartbeat: expected another code, or 0 for none")
	require.ErrorContains(t, Codes{Sessions: Methods}.Check(), "of session is also the code of methods")
	require.ErrorContains(t, Codes{Records: 9, RecordDetail: 9}.Check(), "code 0x0009 of tt_detail is also the code of tt_list")
}

func TestTheDocumentsRepliesAreRead(t *testing.T) {
	for _, d := range allOfTheDocument(t) {
		data := sample(t, d.sample+".reply")
		assert.Equal(t, !d.sloppy, json.Valid(data), "only samples that are no JSON need tolerance: %s", d.sample)
		got, tolerated, err := decoded(d.command, data)
		require.NoError(t, err, d.sample)
		assert.Equal(t, d.replies, got)
		assert.Equal(t, d.sloppy, tolerated)
	}
}

// decoded returns the answers in data.
func decoded(command javamethods.Command, data []byte) (replies []javamethods.Reply, tolerated bool, err error) {
	d := newDecoder(time.UTC, DefaultMaxTolerated, new(sync.Mutex))
	tolerated, err = d.decode(command, data, func(r javamethods.Reply) { replies = append(replies, kept(r)) })
	return replies, tolerated, err
}
