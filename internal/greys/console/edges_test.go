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
	"github.com/callbraid/callbraid/internal/javamethods"
)

// repliesTo returns the replies to a command after a server, with a prompt, sent text.
func repliesTo(command javamethods.Command, text string) ([]javamethods.Reply, error) {
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
	records := string(AppendRecords(nil, []javamethods.Record{{Index: 1, Time: busySince, Class: "C", Method: "m"}}))
	detail := string(AppendRecordDetail(nil, &javamethods.RecordDetail{Record: javamethods.Record{Index: 1, Time: busySince, Class: "C", Method: "m"}}))
	methods := string(AppendMethods(nil, []javamethods.Method{{Class: "C", Name: "m"}}))
	cycle := string(AppendStatistics(nil, &javamethods.Statistics{Methods: []javamethods.MethodStatistics{{Time: busySince, Class: "C", Method: "m", Calls: 2, Failed: 2}}}))
	for _, tt := range []struct {
		name    string
		command javamethods.Command
		text    string
		err     string
	}{
		{"a border with a hole", javamethods.MonitorCommand{}, "+-- --+\n", `line at byte 0: expected a table's border, got "+-- --+"`},
		{"a border without room", javamethods.MonitorCommand{}, "+--+\n", `line at byte 0: expected a table's border, got "+--+"`},
		{"half a border", javamethods.MonitorCommand{}, "+---+--\n", `line at byte 0: expected a table's border, got "+---+--"`},
		{"a border of many columns", javamethods.MonitorCommand{}, strings.Repeat("+---", 33) + "+\n", `line at byte 0: expected a table of at most 32 columns, got`},
		{"text instead of a table", javamethods.RecordsCommand{}, "what\n", `line at byte 0: expected a table's border, got "what"`},
		{"HTTP instead of a table", javamethods.SessionsCommand{}, "HTTP/1.1 400 Bad Request\r\n", `an HTTP server answers, not Greys: it begins with "HTTP/1.1 400 Bad Request\r"`},
		{"a row without a border", javamethods.RecordsCommand{}, "| a |\n", `line at byte 0: expected a table's border above a row, got "| a |"`},
		{"a table of other columns", javamethods.RecordsCommand{}, "+---+\n", `line at byte 0: expected a table of 9 columns, got "+---+"`},
		{"a bar that is missing", javamethods.SessionsCommand{}, twoColumns + "| JAVA_PID         1 |\n", `line at byte 23: expected a row, with a bar below each cross of the border, got`},
		{"a row that is short", javamethods.SessionsCommand{}, twoColumns + "| JAVA_PID\n", `line at byte 23: expected a row, with a bar below`},
		{"a row that is long", javamethods.SessionsCommand{}, twoColumns + "|       JAVA_PID | 1 | |\n", `line at byte 23: expected a row, with a bar below`},
		{"a wide character too much", javamethods.SessionsCommand{}, twoColumns + "|      é JAVA_PID | 1 |\n", `line at byte 23: expected a row, with a bar below`},
		{"no number", javamethods.SessionsCommand{}, twoColumns + "|       JAVA_PID | x |\n" + twoColumns, `line at byte 46: expected a number as the session's JAVA_PID, got "x"`},
		{"a session without a number", javamethods.SessionsCommand{}, twoColumns + "|       JAVA_PID | 1 |\n" + twoColumns, `expected a table with the session's JAVA_PID and SESSION_ID, got the end of the answer`},
		{"a table cut in a row", javamethods.SessionsCommand{}, twoColumns + "|       JAVA_PID | 1 |\n", `line at byte 52: expected a border below the last row of a table, got the end of the answer`},
		{"a monitor of other columns", javamethods.MonitorCommand{}, "+-----------+\n| TIMESTAMP |\n", `line at byte 14: expected the columns of a monitor: TIMESTAMP, CLASS, METHOD, TOTAL, SUCCESS, FAIL, got "| TIMESTAMP |"`},
		{"a monitor cut in a row", javamethods.MonitorCommand{}, monitorTop + "| 2026-1", `line at byte 168: expected a row, with a bar below`},
		{"a monitor without a time", javamethods.MonitorCommand{}, monitorTop + "| yesterday | C     | m      | 1     | 1       | 0    |\n", `line at byte 168: expected a row of a monitor with a value of its kind in column 1, got`},
		{"a monitor with more failures than calls", javamethods.MonitorCommand{}, strings.Replace(cycle, "| 2     | 0  ", "| 1     | 0  ", 1), `expected a row of a monitor with SUCCESS and FAIL that are at most TOTAL together, got`},
		{"a monitor with more successes than calls", javamethods.MonitorCommand{}, strings.Replace(cycle, "| 2     | 0       | 2 ", "| 2     | 9       | 0 ", 1), `expected a row of a monitor with SUCCESS and FAIL that are at most TOTAL together, got`},
		{"a monitor with a line in a row", javamethods.MonitorCommand{}, monitorTop[:112] + "| a | b\n", `line at byte 112: expected a border below a row of a monitor, got "| a | b"`},
		{"a record with a bad index", javamethods.RecordsCommand{}, strings.Replace(records, "       1 |", "      -1 |", 1), `expected a recorded call with a value of its kind as INDEX, got "-1"`},
		{"a record with a bad time", javamethods.RecordsCommand{}, strings.Replace(records, "2026-11", "2026-13", 1), `expected a recorded call with a value of its kind as TIMESTAMP, got "2026-13-20 09:12:20"`},
		{"a record long ago", javamethods.RecordsCommand{}, strings.Replace(records, "2026", "0026", 1), `with a value of its kind as TIMESTAMP`},
		{"records under other names", javamethods.RecordsCommand{}, strings.Replace(records, "COST(ms)", "COST(us)", 1), `expected the name of a column: COST(ms), got "COST(us)"`},
		{"a record's detail cut", javamethods.RecordDetailCommand{}, detail[:len(detail)/173/2*173], `expected`},
		{"a detail with a bad boolean", javamethods.RecordDetailCommand{}, strings.Replace(detail, "IS-RETURN | false", "IS-RETURN | maybe", 1), `expected a recorded call with a value of its kind as IS-RETURN, got "maybe"`},
		{"a detail without its class", javamethods.RecordDetailCommand{}, strings.Replace(detail, "  CLASS |", "  CLASH |", 1), `expected a table of a recorded call, with INDEX`},
		{"a method without a name", javamethods.MethodsCommand{}, strings.Replace(methods, "gaMethod-name : m", "gaMethod-name :  ", 1), `expected a method with declaring-class and gaMethod-name, got`},
		{"a method out of line", javamethods.MethodsCommand{}, strings.Replace(methods, "  gaMethod-name : m", "gaMethod-name : m  ", 1), `expected a line of a method: name : value, got "gaMethod-name : m"`},
		{"a tree without a title", javamethods.TraceCommand{}, "    `---[1,1ms]a:b()\n", "line at byte 0: expected the title of a tree of calls: `---+Tracing for : ..., got"},
		{"a title without a thread", javamethods.TraceCommand{}, "`---+Tracing for : main\n", `line at byte 0: expected a title: thread_name="..."`},
		{"a title that goes on too long", javamethods.StackCommand{}, "thread_name=\"a\n" + strings.Repeat("b\n", 20), `line at byte 43: expected a title: thread_name="..."`},
		{"a call too deep", javamethods.TraceCommand{}, treeTitle + "        `---[1,1ms]a:b()\n", "line at byte 80: expected a call of a tree, at depth 1 to 1, got"},
		{"a call below a throw", javamethods.TraceCommand{}, treeTitle + "    `---[1,1ms]a:b()\n        `---[1,1ms]throw:X()\n            `---[1,1ms]a:b()\n", "expected a call of a tree, at depth 1 to 2, got"},
		{"a call without times", javamethods.TraceCommand{}, treeTitle + "    `---a:b()\n", "line at byte 80: expected a call of a tree: [end,durationms]class:method(@line), got"},
		{"a call without a class", javamethods.TraceCommand{}, treeTitle + "    `---[1,1ms]b()\n", "line at byte 80: expected a call of a tree: [end,durationms]class:method(@line), got"},
		{"a call at no line", javamethods.TraceCommand{}, treeTitle + "    `---[1,1ms]a:b(@x)\n", "line at byte 80: expected a call of a tree"},
		{"a call that took ages", javamethods.TraceCommand{}, treeTitle + "    `---[99999999999999,1ms]a:b()\n", "line at byte 80: expected a call of a tree"},
		{"a tree cut", javamethods.TraceCommand{}, treeTitle + "    `---[1,1ms]a:b()\n", "line at byte 107: expected the rest of a tree of calls, and a blank line, got the end of the answer"},
		{"a frame that is none", javamethods.StackCommand{}, stackTitle + "    @a.b(c)\n", `line at byte 61: expected a frame of a stack: class.method(file:line), behind "    @", got`},
		{"a stack cut", javamethods.StackCommand{}, stackTitle, `line at byte 67: expected the rest of a stack, and a blank line, got the end of the answer`},
		{"no version", javamethods.VersionCommand{}, "   +-+-+\n", `line at byte 15: expected a drawing with the line |v|e|r|s|i|o|n|:|..., got the end of the answer`},
		{"an answer to a reset", javamethods.ResetCommand{}, "+---+\n", `line at byte 0: expected nothing but the end of the answer, got "+---+"`},
		{"counts that are none", javamethods.ResetCommand{}, "Affect(class-cnt:x) cost in 1 ms.\n", `line at byte 0: expected nothing but the end of the answer, got`},
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
	row := javamethods.MethodStatistics{Time: busySince, Class: "C", Method: "m", Calls: 1, Succeeded: 1, Mean: 1500 * ms, HasMean: true, Min: 1111 * ms, Max: 2222 * ms, HasRange: true}
	table := string(AppendStatistics(nil, &javamethods.Statistics{Methods: []javamethods.MethodStatistics{row}}))
	none := row
	none.Min, none.Max, none.HasRange = 0, 0, false
	for text, want := range map[string]javamethods.MethodStatistics{
		table: row,
		strings.Replace(table, "1111", "    ", 1): none,
		strings.Replace(table, "2222", "    ", 1): none,
	} {
		replies, err := repliesTo(javamethods.MonitorCommand{}, text)
		require.NoError(t, err)
		assert.Equal(t, []javamethods.MethodStatistics{want}, replies[0].(*javamethods.Statistics).Methods, text)
	}
}

func TestWordsOfRefusalsHaveAMaximumLength(t *testing.T) {
	for _, first := range []int{1, maxWords - 2, maxWords - 1, maxWords, 2 * maxWords} {
		text := "Command \"x\" " + strings.Repeat("a", first) + "\n" + strings.Repeat("b c\n\n", 2*maxWords)
		_, err := repliesTo(javamethods.VersionCommand{}, text)
		require.ErrorIs(t, err, javamethods.ErrRefused)
		assert.Len(t, err.Error(), len(javamethods.ErrRefused.Error()+": ")+maxWords)
	}
}

func TestNoticesAreReadAnywhereBetweenAnswers(t *testing.T) {
	replies, err := repliesTo(javamethods.TraceCommand{}, aTree+"[dump: /tmp/x.class]\n"+abortNotice+"\nAffect(class-cnt:2 , method-cnt:3) cost in 1 ms.\n\n"+aTree+"Affect cost in 0 ms.\nAffect(row-cnt:7) cost in 0 ms.\n")
	require.NoError(t, err)
	require.Len(t, replies, 4)
	assert.Equal(t, &javamethods.Affected{Classes: 2, Methods: 3}, replies[1])
	assert.Equal(t, &javamethods.Affected{Rows: 7}, replies[3])
}

func TestACallNeverEndsBeforeItsStart(t *testing.T) {
	for text, want := range map[string]javamethods.Node{
		"[11,8ms]":  {Start: 3 * time.Millisecond, End: 11 * time.Millisecond},
		"[-5,-3ms]": {},
		"[3,5ms]":   {End: 3 * time.Millisecond},
		// A call that has not ended: its end is 0, which is 1970.
		"[-1763800000000,-1763800000007ms]": {Start: 7 * time.Millisecond, End: 7 * time.Millisecond},
	} {
		replies, err := repliesTo(javamethods.TraceCommand{}, treeTitle+"    `---"+text+"a:b()\n\n")
		require.NoError(t, err)
		want.Class, want.Method = "a", "b"
		assert.Equal(t, []javamethods.Node{want}, replies[0].(*javamethods.Tree).Nodes, text)
		assert.Equal(t, strings.HasPrefix(text, "[-17"), replies[0].(*javamethods.Tree).Unended, text)
	}
}

func TestATreeWithoutCallsIsIgnored(t *testing.T) {
	replies, err := repliesTo(javamethods.TraceCommand{}, "`---Tracing for : "+stackTitle+"\n")
	require.NoError(t, err)
	assert.Empty(t, replies)
}

func TestPathTracesAreReadAsTrees(t *testing.T) {
	replies, err := repliesTo(javamethods.TraceCommand{}, "`---+pTracing for : "+strings.TrimSuffix(stackTitle, "\n")+"process=1005;\n"+
		"    `---+[2,2ms]a.B:c(); index=1001;\n        `---[2,0ms]throw:java.io.IOException\n\n")
	require.NoError(t, err)
	assert.Equal(t, []javamethods.Node{{End: 2 * time.Millisecond, Class: "a.B", Method: "c", Throws: "java.io.IOException"}}, replies[0].(*javamethods.Tree).Nodes)
}

func TestTextsLongerThanTheirColumnAreJoined(t *testing.T) {
	loader := strings.Repeat("l", 80)
	replies, err := repliesTo(javamethods.ClassesCommand{}, string(AppendClass(nil, &javamethods.Class{Name: "a." + loader, Loaders: []string{loader, loader + loader, "parent"}})))
	require.NoError(t, err)
	assert.Equal(t, []string{loader, loader + loader, "parent"}, replies[0].(*javamethods.Class).Loaders)
	assert.Equal(t, "a."+loader, replies[0].(*javamethods.Class).Name)

	// 18 characters stand before a value of a method.
	method := javamethods.Method{Class: "C", Name: strings.Repeat("n", 82), Parameters: []string{strings.Repeat("p", 82), strings.Repeat("q", 200), "int"}, Return: strings.Repeat("r", 82)}
	replies, err = repliesTo(javamethods.MethodsCommand{}, string(AppendMethods(nil, []javamethods.Method{method})))
	require.NoError(t, err)
	assert.Equal(t, []javamethods.Reply{&method}, replies)

	detail := javamethods.RecordDetail{Record: javamethods.Record{Time: busySince, Class: "C", Method: "m", Threw: true}, Exception: strings.Repeat("e", 150) + "\n    at a.b(C.java:1)\n    ... 3 more\nCaused by: x", HasStack: true}
	detail.Stack = javamethods.CallStack{Frames: []javamethods.Frame{{Class: "a", Method: strings.Repeat("m", 138), File: "F", Line: 1}, {Class: "a", Method: strings.Repeat("n", 131), File: "Fi", Line: 1}}}
	replies, err = repliesTo(javamethods.RecordDetailCommand{}, string(AppendRecordDetail(nil, &detail)))
	require.NoError(t, err)
	assert.Equal(t, []javamethods.Reply{&detail}, replies)
}

func TestTimesAreReadInTheConfiguredZone(t *testing.T) {
	zone := time.FixedZone("CST", 8*60*60)
	at := busySince.In(zone)
	text := AppendRecords(nil, []javamethods.Record{{Time: at}})
	assert.Contains(t, string(text), "2026-11-20 17:12:20")
	replies, err := answers(javamethods.RecordsCommand{}, "", Config{Zone: zone}, append(text, EndOfReply))
	require.NoError(t, err)
	assert.True(t, at.Equal(replies[0].(*javamethods.Record).Time))
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
	for text, want := range map[string]javamethods.Affected{
		"Affect(class-cnt:١ , method-cnt:٢٥) cost in 35 ms.\n": {Classes: 1, Methods: 25},
		"Affect(class-cnt:۱ , method-cnt:۲) cost in 35 ms.\n":  {Classes: 1, Methods: 2},
		"Affect(class-cnt:१ , method-cnt:३) cost in 35 ms.\n":  {Classes: 1, Methods: 3},
	} {
		replies, err := repliesTo(javamethods.ResetCommand{}, text)
		require.NoError(t, err)
		assert.Equal(t, []javamethods.Reply{&want}, replies)
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
