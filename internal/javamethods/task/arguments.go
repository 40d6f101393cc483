// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// Names of arguments of operators.
const (
	argumentClass  = "class"
	argumentMethod = "method"
	argumentRegexp = "regexp"
	argumentCycle  = "cycle"
	argumentLimit  = "limit"
)

// Arguments can stop the traced program. The program stands still while the server instruments all matching classes.
// The server tries a regular expression on the names of all loaded classes; one that backtracks may never end, and so
// may many wildcards. Recorded calls stay in the program's memory, with all objects that they reference.
var (
	allClasses = &agentcontrol.Condition{Text: "it has no letter or digit, or " + tooMany, Holds: func(class string) bool {
		return manyWildcards.Holds(class) ||
			!strings.ContainsFunc(class, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	}}
	manyWildcards = &agentcontrol.Condition{Text: "it has " + tooMany, Holds: func(pattern string) bool {
		between := strings.FieldsFunc("-"+pattern+"-", func(r rune) bool { return r == '*' })
		return len(between)-1 > fewWildcards
	}}
	tooMany     = fmt.Sprintf("more than %d separate asterisks", fewWildcards)
	expressions = &agentcontrol.Condition{Text: "it is true", Holds: func(regexp string) bool { return regexp == "true" }}
	manyRecords = &agentcontrol.Condition{Text: fmt.Sprintf("it is %d, or above %d", Unlimited, fewRecords), Holds: func(limit string) bool {
		n, err := strconv.ParseInt(limit, 10, 64)
		return err != nil || n < 0 || n > fewRecords
	}}
)

// fewWildcards is the number of asterisk groups that the server matches fast. With 5 it needed 68 million steps for a
// name of 61 characters, with 3 fewer than a million.
const fewWildcards = 3

// fewRecords is the number of recorded calls that should not exhaust the program's memory.
const fewRecords = 1000

// TargetParameters are the parameters that select methods.
func TargetParameters() []agentcontrol.Parameter {
	return []agentcontrol.Parameter{
		{Name: argumentClass, Summary: "Qualified names of classes: * is any text, ? a character.", Kind: agentcontrol.Text, Required: true, MaxBytes: javamethods.MaxPatternBytes, DisruptiveIf: allClasses},
		{Name: argumentMethod, Summary: "Names of methods, in the same way.", Kind: agentcontrol.Text, Required: true, MaxBytes: javamethods.MaxPatternBytes, DisruptiveIf: manyWildcards},
		RegexpParameter("Both are Java's regular expressions."),
	}
}

// ClassesParameter is an optional pattern of classes.
func ClassesParameter(summary string) agentcontrol.Parameter {
	return agentcontrol.Parameter{Name: argumentClass, Summary: summary, Kind: agentcontrol.Text, MaxBytes: javamethods.MaxPatternBytes, DisruptiveIf: manyWildcards}
}

// RegexpParameter makes patterns regular expressions.
func RegexpParameter(summary string) agentcontrol.Parameter {
	return agentcontrol.Parameter{Name: argumentRegexp, Summary: summary, Kind: agentcontrol.Boolean, DisruptiveIf: expressions}
}

// Parameters of single commands: the cycle of a monitor, and the limit of calls or of recorded calls.
var (
	CycleParameter = agentcontrol.Parameter{
		Name: argumentCycle, Summary: "The length of a cycle in seconds; default 10.", Kind: agentcontrol.Integer, Least: 1, Most: int64(MaxCycle / time.Second),
	}
	LimitParameter   = limitParameter(nil)
	RecordsParameter = limitParameter(manyRecords)
)

func limitParameter(disruptiveIf *agentcontrol.Condition) agentcontrol.Parameter {
	return agentcontrol.Parameter{
		Name: argumentLimit, Summary: "The number of calls after which it ends; default 100, -1: no limit.", Kind: agentcontrol.Integer,
		Least: Unlimited, Most: math.MaxInt32, DisruptiveIf: disruptiveIf,
	}
}

// TargetOf, MonitorOf and CallsOf return the arguments of an operator in the form of a configuration, unchecked.
func TargetOf(arguments agentcontrol.Arguments) TargetConfig {
	return TargetConfig{Class: arguments.Text(argumentClass), Method: arguments.Text(argumentMethod), Regexp: arguments.Boolean(argumentRegexp)}
}

func MonitorOf(arguments agentcontrol.Arguments) MonitorConfig {
	seconds, _ := arguments.Integer(argumentCycle)
	return MonitorConfig{TargetConfig: TargetOf(arguments), Cycle: time.Duration(seconds) * time.Second}
}

func CallsOf(arguments agentcontrol.Arguments) CallsConfig {
	limit, _ := arguments.Integer(argumentLimit)
	return CallsConfig{TargetConfig: TargetOf(arguments), Limit: int(limit)}
}

// ClassesOf returns the classes of an operator's arguments. Without a pattern they are all classes.
func ClassesOf(arguments agentcontrol.Arguments) (javamethods.Classes, error) {
	pattern, err := Pattern("arguments."+argumentClass, cmp.Or(arguments.Text(argumentClass), "*"), "com.example.*")
	return javamethods.Classes{Pattern: pattern, Regexp: arguments.Boolean(argumentRegexp)}, err
}
