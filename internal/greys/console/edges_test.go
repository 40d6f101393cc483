// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys"
)

// repliesTo returns the replies to a command after a server, with a prompt, sent text.
func repliesTo(command greys.Command, text string) ([]greys.Reply, error) {
	return answers(command, "\r"+DefaultPrompt, Config{}, []byte(text+end))
}

const (
	treeTitle  = "`---+Tracing for : thread_name=\"main\" thread_id=0x1;is_daemon=false;priority=5;\n"
	stackTitle = "thread_name=\"main\" thread_id=0x1;is_daemon=false;priority=5;\n"
	twoColumns = "+----------------+---+\n"
	monitorTop = "+-----------+-------+--------+-------+---------+------+\n" +
		"| TIMESTAMP | CLASS | METHOD | TOTAL | SUCCESS | FAIL |\n" +
		"+-----------+-------+--------+-------+---------+------+\n"
)

func TestUnknownSyntaxIsAnErrorWithItsOffset(t *testing.T) {
	records := string(AppendRecords(nil, []greys.Record{{Index: 1, Time: busySince, Class: "C", Method: "m"}}))
	detail := string(AppendRecordDetail(nil, &greys.RecordDetail{Record: greys.Record{Index: 1, Time: busySince, Class: "C", Method: "m"}}))
	methods := string(AppendMethods(nil, []greys.Method{{Class: "C", Name: "m"}}))
	cycle := string(AppendStatistics(nil, &greys.Statistics{Methods: []greys.MethodStatistics{{Time: busySince, Class: "C", Method: "m", Calls: 2, Failed: 2}}}))
	for _, tt := range []struct {
		name    string
		command greys.Command
		text    string
		err     string
	}{
		{"a border with a hole", greys.MonitorCommand{}, "+-- --+\n", `line at byte 0: expected a table's border, got "+-- --+"`},
		{"a border without room", greys.MonitorCommand{}, "+--+\n", `line at byte 0: expected a table's border, got "+--+"`},
		{"half a border", greys.MonitorCommand{}, "+---+--\n", `line at byte 0: expected a table's border, got "+---+--"`},
		{"a border of many columns", greys.MonitorCommand{}, strings.Repeat("+---", 33) + "+\n", `line at byte 0: expected a table of at most 32 columns, got`},
		{"text instead of a table", greys.RecordsCommand{}, "what\n", `line at byte 0: expected a table's border, got "what"`},
		{"HTTP instead of a table", greys.SessionsCommand{}, "HTTP/1.1 400 Bad Request\r\n", `an HTTP server answers, not Greys: it begins with "HTTP/1.1 400 Bad Request\r"`},
		{"a row without a border", greys.RecordsCommand{}, "| a |\n", `line at byte 0: expected a table's border above a row, got "| a |"`},
		{"a table of other columns", greys.RecordsCommand{}, "+---+\n", `line at byte 0: expected a table of 9 columns, got "+---+"`},
		{"a bar that is missing", greys.SessionsCommand{}, twoColumns + "| JAVA_PID         1 |\n", `line at byte 23: expected a row, with a bar below each cross of the border, got`},
		{"a row that is short", greys.SessionsCommand{}, twoColumns + "| JAVA_PID\n", `line at byte 23: expected a row, with a bar below`},
		{"a row that is long", greys.SessionsCommand{}, twoColumns + "|       JAVA_PID | 1 | |\n", `line at byte 23: expected a row, with a bar below`},
		{"a wide character too much", greys.SessionsCommand{}, twoColumns + "|      é JAVA_PID | 1 |\n", `line at byte 23: expected a row, with a bar below`},
		{"no number", greys.SessionsCommand{}, twoColumns + "|       JAVA_PID | x |\n" + twoColumns, `line at byte 46: expected a number as the session's JAVA_PID, got "x"`},
		{"a session without a number", greys.SessionsCommand{}, twoColumns + "|       JAVA_PID | 1 |\n" + twoColumns, `expected a table with the session's JAVA_PID and SESSION_ID, got the end of the answer`},
		{"a table cut in a row", greys.SessionsCommand{}, twoColumns + "|       JAVA_PID | 1 |\n", `line at byte 52: expected a border below the last row of a table, got the end of the answer`},
		{"a monitor of other columns", greys.MonitorCommand{}, "+-----------+\n| TIMESTAMP |\n", `line at byte 14: expected the columns of a monitor: TIMESTAMP, CLASS, METHOD, TOTAL, SUCCESS, FAIL, got "| TIMESTAMP |"`},
		{"a monitor cut in a row", greys.MonitorCommand{}, monitorTop + "| 2026-1", `line at byte 168: expected a row, with a bar below`},
		{"a monitor without a time", greys.MonitorCommand{}, monitorTop + "| yesterday | C     | m      | 1     | 1       | 0    |\n", `line at byte 168: expected a row of a monitor with a value of its kind in column 1, got`},
		{"a monitor with more failures than calls", greys.MonitorCommand{}, strings.Replace(cycle, "| 2     | 0  ", "| 1     | 0  ", 1), `expected a row of a monitor with SUCCESS and FAIL that are at most TOTAL together, got`},
		{"a monitor with more successes than calls", greys.MonitorCommand{}, strings.Replace(cycle, "| 2     | 0       | 2 ", "| 2     | 9       | 0 ", 1), `expected a row of a monitor with SUCCESS and FAIL that are at most TOTAL together, got`},
		{"a monitor with a line in a row", greys.MonitorCommand{}, monitorTop[:112] + "| a | b\n", `line at byte 112: expected a border below a row of a monitor, got "| a | b"`},
		{"a record with a bad index", greys.RecordsCommand{}, strings.Replace(records, "       1 |", "      -1 |", 1), `expected a recorded call with a value of its kind as INDEX, got "-1"`},
		{"a record with a bad time", greys.RecordsCommand{}, strings.Replace(records, "2026-11", "2026-13", 1), `expected a recorded call with a value of its kind as TIMESTAMP, got "2026-13-20 09:12:20"`},
		{"a record long ago", greys.RecordsCommand{}, strings.Replace(records, "2026", "0026", 1), `with a value of its kind as TIMESTAMP`},
		{"records under other names", greys.RecordsCommand{}, strings.Replace(records, "COST(ms)", "COST(us)", 1), `expected the name of a column: COST(ms), got "COST(us)"`},
		{"a record's detail cut", greys.RecordDetailCommand{}, detail[:len(detail)/173/2*173], `expected`},
		{"a detail with a bad boolean", greys.RecordDetailCommand{}, strings.Replace(detail, "IS-RETURN | false", "IS-RETURN | maybe", 1), `expected a recorded call with a value of its kind as IS-RETURN, got "maybe"`},
		{"a detail without its class", greys.RecordDetailCommand{}, strings.Replace(detail, "  CLASS |", "  CLASH |", 1), `expected a table of a recorded call, with INDEX`},
		{"a method without a name", greys.MethodsCommand{}, strings.Replace(methods, "gaMethod-name : m", "gaMethod-name :  ", 1), `expected a method with declaring-class and gaMethod-name, got`},
		{"a method out of line", greys.MethodsCommand{}, strings.Replace(methods, "  gaMethod-name : m", "gaMethod-name : m  ", 1), `expected a line of a method: name : value, got "gaMethod-name : m"`},
		{"a tree without a title", greys.TraceCommand{}, "    `---[1,1ms]a:b()\n", "line at byte 0: expected the title of a tree of calls: `---+Tracing for : ..., got"},
		{"a title without a thread", greys.TraceCommand{}, "`---+Tracing for : main\n", `line at byte 0: expected a title: thread_name="..."`},
		{"a title that goes on too long", greys.StackCommand{}, "thread_name=\"a\n" + strings.Repeat("b\n", 20), `line at byte 43: expected a title: thread_name="..."`},
		{"a call too deep", greys.TraceCommand{}, treeTitle + "        `---[1,1ms]a:b()\n", "line at byte 80: expected a call of a tree, at depth 1 to 1, got"},
		{"a call below a throw", greys.TraceCommand{}, treeTitle + "    `---[1,1ms]a:b()\n        `---[1,1ms]throw:X()\n            `---[1,1ms]a:b()\n", "expected a call of a tree, at depth 1 to 2, got"},
		{"a call without times", greys.TraceCommand{}, treeTitle + "    `---a:b()\n", "line at byte 80: expected a call of a tree: [end,durationms]class:method(@line), got"},
		{"a call without a class", greys.TraceCommand{}, treeTitle + "    `---[1,1ms]b()\n", "line at byte 80: expected a call of a tree: [end,durationms]class:method(@line), got"},
		{"a call at no line", greys.TraceCommand{}, treeTitle + "    `---[1,1ms]a:b(@x)\n", "line at byte 80: expected a call of a tree"},
		{"a call that took ages", greys.TraceCommand{}, treeTitle + "    `---[99999999999999,1ms]a:b()\n", "line at byte 80: expected a call of a tree"},
		{"a tree cut", greys.TraceCommand{}, treeTitle + "    `---[1,1ms]a:b()\n", "line at byte 107: expected the rest of a tree of calls, and a blank line, got the end of the answer"},
		{"a frame that is none", greys.StackCommand{}, stackTitle + "    @a.b(c)\n", `line at byte 61: expected a frame of a stack: class.method(file:line), behind "    @", got`},
		{"a stack cut", greys.StackCommand{}, stackTitle, `line at byte 67: expected the rest of a stack, and a blank line, got the end of the answer`},
		{"no version", greys.VersionCommand{}, "   +-+-+\n", `line at byte 15: expected a drawing with the line |v|e|r|s|i|o|n|:|..., got the end of the answer`},
		{"an answer to a reset", greys.ResetCommand{}, "+---+\n", `line at byte 0: expected nothing but the end of the answer, got "+---+"`},
		{"counts that are none", greys.ResetCommand{}, "Affect(class-cnt:x) cost in 1 ms.\n", `line at byte 0: expected nothing but the end of the answer, got`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := repliesTo(tt.command, tt.text)
			if !errors.Is(err, greys.ErrHTTP) {
				require.ErrorAs(t, err, new(*SyntaxError))
			}
			require.ErrorContains(t, err, tt.err)
		})
	}
}

func TestARangeNeedsItsMinimumAndMaximum(t *testing.T) {
	const ms = time.Millisecond
	row := greys.MethodStatistics{Time: busySince, Class: "C", Method: "m", Calls: 1, Succeeded: 1, Mean: 1500 * ms, HasMean: true, Min: 1111 * ms, Max: 2222 * ms, HasRange: true}
	table := string(AppendStatistics(nil, &greys.Statistics{Methods: []greys.MethodStatistics{row}}))
	none := row
	none.Min, none.Max, none.HasRange = 0, 0, false
	for text, want := range map[string]greys.MethodStatistics{
		table: row,
		strings.Replace(table, "1111", "    ", 1): none,
		strings.Replace(table, "2222", "    ", 1): none,
	} {
		replies, err := repliesTo(greys.MonitorCommand{}, text)
		require.NoError(t, err)
		assert.Equal(t, []greys.MethodStatistics{want}, replies[0].(*greys.Statistics).Methods, text)
	}
}

func TestWordsOfRefusalsHaveAMaximumLength(t *testing.T) {
	for _, first := range []int{1, maxWords - 2, maxWords - 1, maxWords, 2 * maxWords} {
		text := "Command \"x\" " + strings.Repeat("a", first) + "\n" + strings.Repeat("b c\n\n", 2*maxWords)
		_, err := repliesTo(greys.VersionCommand{}, text)
		require.ErrorIs(t, err, greys.ErrRefused)
		assert.Len(t, err.Error(), len(greys.ErrRefused.Error()+": ")+maxWords)
	}
}

func TestNoticesAreReadAnywhereBetweenAnswers(t *testing.T) {
	replies, err := repliesTo(greys.TraceCommand{}, aTree+"[dump: /tmp/x.class]\n"+abortNotice+"\nAffect(class-cnt:2 , method-cnt:3) cost in 1 ms.\n\n"+aTree+"Affect cost in 0 ms.\nAffect(row-cnt:7) cost in 0 ms.\n")
	require.NoError(t, err)
	require.Len(t, replies, 4)
	assert.Equal(t, &greys.Affected{Classes: 2, Methods: 3}, replies[1])
	assert.Equal(t, &greys.Affected{Rows: 7}, replies[3])
}

func TestACallNeverEndsBeforeItsStart(t *testing.T) {
	for text, want := range map[string]greys.Node{
		"[11,8ms]":  {Start: 3 * time.Millisecond, End: 11 * time.Millisecond},
		"[-5,-3ms]": {},
		"[3,5ms]":   {End: 3 * time.Millisecond},
		// A call that has not ended: its end is 0, which is 1970.
		"[-1763800000000,-1763800000007ms]": {Start: 7 * time.Millisecond, End: 7 * time.Millisecond},
	} {
		replies, err := repliesTo(greys.TraceCommand{}, treeTitle+"    `---"+text+"a:b()\n\n")
		require.NoError(t, err)
		want.Class, want.Method = "a", "b"
		assert.Equal(t, []greys.Node{want}, replies[0].(*greys.Tree).Nodes, text)
		assert.Equal(t, strings.HasPrefix(text, "[-17"), replies[0].(*greys.Tree).Unended, text)
	}
}

func TestATreeWithoutCallsIsIgnored(t *testing.T) {
	replies, err := repliesTo(greys.TraceCommand{}, "`---Tracing for : "+stackTitle+"\n")
	require.NoError(t, err)
	assert.Empty(t, replies)
}

func TestPathTracesAreReadAsTrees(t *testing.T) {
	replies, err := repliesTo(greys.TraceCommand{}, "`---+pTracing for : "+strings.TrimSuffix(stackTitle, "\n")+"process=1005;\n"+
		"    `---+[2,2ms]a.B:c(); index=1001;\n        `---[2,0ms]throw:java.io.IOException\n\n")
	require.NoError(t, err)
	assert.Equal(t, []greys.Node{{End: 2 * time.Millisecond, Class: "a.B", Method: "c", Throws: "java.io.IOException"}}, replies[0].(*greys.Tree).Nodes)
}

func TestTextsLongerThanTheirColumnAreJoined(t *testing.T) {
	loader := strings.Repeat("l", 80)
	replies, err := repliesTo(greys.ClassesCommand{}, string(AppendClass(nil, &greys.Class{Name: "a." + loader, Loaders: []string{loader, loader + loader, "parent"}})))
	require.NoError(t, err)
	assert.Equal(t, []string{loader, loader + loader, "parent"}, replies[0].(*greys.Class).Loaders)
	assert.Equal(t, "a."+loader, replies[0].(*greys.Class).Name)

	// 18 characters stand before a value of a method.
	method := greys.Method{Class: "C", Name: strings.Repeat("n", 82), Parameters: []string{strings.Repeat("p", 82), strings.Repeat("q", 200), "int"}, Return: strings.Repeat("r", 82)}
	replies, err = repliesTo(greys.MethodsCommand{}, string(AppendMethods(nil, []greys.Method{method})))
	require.NoError(t, err)
	assert.Equal(t, []greys.Reply{&method}, replies)

	detail := greys.RecordDetail{Record: greys.Record{Time: busySince, Class: "C", Method: "m", Threw: true}, Exception: strings.Repeat("e", 150) + "\n    at a.b(C.java:1)\n    ... 3 more\nCaused by: x", HasStack: true}
	detail.Stack = greys.CallStack{Frames: []greys.Frame{{Class: "a", Method: strings.Repeat("m", 138), File: "F", Line: 1}, {Class: "a", Method: strings.Repeat("n", 131), File: "Fi", Line: 1}}}
	replies, err = repliesTo(greys.RecordDetailCommand{}, string(AppendRecordDetail(nil, &detail)))
	require.NoError(t, err)
	assert.Equal(t, []greys.Reply{&detail}, replies)
}

func TestTimesAreReadInTheConfiguredZone(t *testing.T) {
	zone := time.FixedZone("CST", 8*60*60)
	at := busySince.In(zone)
	text := AppendRecords(nil, []greys.Record{{Time: at}})
	assert.Contains(t, string(text), "2026-11-20 17:12:20")
	replies, err := answers(greys.RecordsCommand{}, "", Config{Zone: zone}, append(text, EndOfReply))
	require.NoError(t, err)
	assert.True(t, at.Equal(replies[0].(*greys.Record).Time))
}

// The released server writes these with -Duser.language and -Duser.country of the locale.
func TestDigitsOfTheServersLocaleAreRead(t *testing.T) {
	at := time.Date(2026, 11, 23, 1, 31, 24, 0, time.UTC)
	for locale, text := range map[string]string{
		"Arabic, Egypt": "٢٠٢٦-١١-٢٣ ٠١:٣١:٢٤", "Persian, Iran": "۲۰۲۶-۱۱-۲۳ ۰۱:۳۱:۲۴", "Hindi with Devanagari digits": "२०२६-११-२३ ०१:३१:२४",
		"Thai, Thailand": "2569-11-23 01:31:24", "English": "2026-11-23 01:31:24",
	} {
		t.Run(locale, func(t *testing.T) {
			c := clock{zone: time.UTC}
			for range 2 {
				got, ok := c.parse([]byte(text))
				assert.True(t, ok)
				assert.Equal(t, at, got)
			}
		})
	}
	for text, want := range map[string]greys.Affected{
		"Affect(class-cnt:١ , method-cnt:٢٥) cost in 35 ms.\n": {Classes: 1, Methods: 25},
		"Affect(class-cnt:۱ , method-cnt:۲) cost in 35 ms.\n":  {Classes: 1, Methods: 2},
		"Affect(class-cnt:१ , method-cnt:३) cost in 35 ms.\n":  {Classes: 1, Methods: 3},
	} {
		replies, err := repliesTo(greys.ResetCommand{}, text)
		require.NoError(t, err)
		assert.Equal(t, []greys.Reply{&want}, replies)
	}
}

func TestEachDecimalDigitHasItsValue(t *testing.T) {
	for _, script := range []string{"0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "๐๑๒๓๔๕๖๗๘๙", "０１２３４５６７８９", "𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡"} {
		want := byte(0)
		for _, r := range script {
			got, ok := digitOf(r)
			assert.True(t, ok)
			assert.Equal(t, want, got, "%c", r)
			want++
		}
	}
	for _, r := range "x½Ⅷ²" {
		_, ok := digitOf(r)
		assert.False(t, ok, "%c", r)
	}
}

func TestTimesInMilliseconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"08.19": 8190 * time.Microsecond, "08,19": 8190 * time.Microsecond, "9": 9 * time.Millisecond, "-00.50": 0, "123456.7": 123456700 * time.Microsecond,
		"1.1234567899": 1123456 * time.Nanosecond,
		"١٢٫٥٠":        12500 * time.Microsecond, "۱۳٫۰۴": 13040 * time.Microsecond, "५८.५०": 58500 * time.Microsecond, "٣": 3 * time.Millisecond,
		"\u061c-٠١٫٥٠": 0, "\u200e\u2212۰۱٫۵۰": 0,
	} {
		got, ok := milliseconds([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", ".5", "x", "1.x", "9999999999999999999", "9223372036854", "--1", "٣x", "٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣"} {
		_, ok := milliseconds([]byte(text))
		assert.False(t, ok, text)
	}
}
