// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Words of commands, and their options.
const (
	wordVersion, wordSession, wordMonitor, wordTrace, wordStack = "version", "session", "monitor", "trace", "stack"
	wordRecord, wordClasses, wordMethods, wordReset             = "tt", "sc", "sm", "reset"

	optionRegexp, optionLimit, optionCycle, optionSilent = "-E", "-n", "-c", "-s"
	optionRecord, optionList, optionIndex                = "-t", "-l", "-i"
	optionDetail, optionFields                           = "-d", "-f"
	setLoud                                              = wordSession + " " + optionSilent + " false"
	maxCycleSeconds                                      = math.MaxInt32 / 1000 // the server counts milliseconds in 32 bits
)

// AppendLine adds the line of a command, without a line break.
//
// A server's reset has no pattern: it restores all classes, including those of running commands.
func AppendLine(b []byte, command javamethods.Command) ([]byte, error) {
	switch c := command.(type) {
	case javamethods.VersionCommand:
		return append(b, wordVersion...), nil
	case javamethods.SessionsCommand:
		return append(b, wordSession...), nil
	case javamethods.MonitorCommand:
		if c.Cycle < time.Second || c.Cycle%time.Second != 0 || c.Cycle/time.Second > maxCycleSeconds {
			return b, fmt.Errorf("cycle is %v: expected whole seconds, from 1 to %d", c.Cycle, maxCycleSeconds)
		}
		b = fmt.Appendf(b, "%s %s %d", wordMonitor, optionCycle, c.Cycle/time.Second)
		return appendTarget(b, c.Target)
	case javamethods.TraceCommand:
		return appendLimited(append(b, wordTrace...), c.Limit, c.Target)
	case javamethods.StackCommand:
		return appendLimited(append(b, wordStack...), c.Limit, c.Target)
	case javamethods.RecordCommand:
		return appendLimited(append(b, wordRecord+" "+optionRecord...), c.Limit, c.Target)
	case javamethods.RecordsCommand:
		return append(b, wordRecord+" "+optionList...), nil
	case javamethods.RecordDetailCommand:
		if c.Index < 0 || c.Index > math.MaxInt32 {
			return b, fmt.Errorf("index of a recorded call is %d: expected 0 to %d", c.Index, math.MaxInt32)
		}
		return fmt.Appendf(b, "%s %s %d", wordRecord, optionIndex, c.Index), nil
	case javamethods.ClassesCommand:
		b = append(b, wordClasses+" "+optionDetail...)
		if c.Fields {
			b = append(b, " "+optionFields...)
		}
		return appendPatterns(b, c.Regexp, c.Class)
	case javamethods.MethodsCommand:
		return appendTarget(append(b, wordMethods+" "+optionDetail...), c.Target)
	case javamethods.ResetCommand:
		return append(b, wordReset...), nil
	default:
		return b, fmt.Errorf("the console has no command for %T", c)
	}
}

func appendLimited(b []byte, limit javamethods.Limit, target javamethods.Target) ([]byte, error) {
	if limit < 0 {
		return b, fmt.Errorf("limit is %d: expected at least 0", limit)
	}
	if limit > 0 {
		b = strconv.AppendInt(append(b, " "+optionLimit+" "...), int64(limit), 10)
	}
	return appendTarget(b, target)
}

func appendTarget(b []byte, t javamethods.Target) ([]byte, error) {
	return appendPatterns(b, t.Regexp, t.Class, t.Method)
}

func appendPatterns(b []byte, regexp bool, patterns ...javamethods.Pattern) ([]byte, error) {
	if regexp {
		b = append(b, " "+optionRegexp...)
	}
	for _, p := range patterns {
		if p == (javamethods.Pattern{}) {
			return b, errors.New("a pattern is missing")
		}
		b = appendArgument(append(b, ' '), p.String())
	}
	return b, nil
}

// appendArgument adds one argument. The server removes a backslash before any character, so a literal backslash is
// written twice. The server also mistakes the end of an argument that begins with a backslash, unless the argument is
// in quotes.
func appendArgument(b []byte, argument string) []byte {
	if !strings.ContainsAny(argument, `\"' `) {
		return append(b, argument...)
	}
	b = append(b, '"')
	for _, c := range []byte(argument) {
		if c == '\\' || c == '"' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, '"')
}

// arguments splits a line as the server does: at spaces, or at quotes, which count only at the beginning of an
// argument. It drops blank arguments.
func arguments(line string) (all []string) {
	var argument strings.Builder
	end, inside, escaped := ' ', true, false
	done := func() {
		if strings.TrimSpace(argument.String()) != "" {
			all = append(all, argument.String())
		}
		argument.Reset()
	}
	for _, c := range line {
		switch {
		case escaped:
			argument.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case inside && c == end:
			done()
			inside = false
		case inside:
			argument.WriteRune(c)
		case c == ' ':
		case c == '\'' || c == '"':
			end, inside = c, true
		default:
			end, inside = ' ', true
			argument.WriteRune(c)
		}
	}
	done()
	return all
}

// Silence is the effect of a line on the silent mode of the session.
type Silence uint8

// The effects of a line.
const (
	Unchanged Silence = iota
	Silent            // the server draws no prompt and does not report how much a pattern matched
	Loud              // the server does both
)

// LineError is the refusal of a line, in the words of a server.
type LineError struct{ Words string }

func (e *LineError) Error() string { return e.Words }

// ParseLine parses a line as a server does. Silence is the effect of a [javamethods.SessionsCommand] on the session.
// The error is a *[LineError]. ParseLine knows only the commands of package javamethods.
func ParseLine(line string) (javamethods.Command, Silence, error) {
	all := arguments(line)
	if len(all) == 0 {
		return nil, Unchanged, &LineError{Words: ""}
	}
	p := &lineParser{word: all[0], options: map[string]string{}}
	known, ok := optionsOf[p.word]
	if !ok {
		return nil, Unchanged, &LineError{fmt.Sprintf(`Command "%s" not found.`, p.word)}
	}
	p.splitOptions(all[1:], known)
	command, silence := p.command()
	if p.err != "" {
		return nil, Unchanged, &LineError{fmt.Sprintf(`Command "%s" preprocessor failed : %s.`, p.word, p.err)}
	}
	return command, silence, nil
}

// optionsOf are the options of each command. A colon follows an option that has a value.
var optionsOf = map[string]string{
	wordVersion: "", wordSession: "s:", wordMonitor: "c:E", wordTrace: "En:", wordStack: "En:", wordRecord: "tli:En:",
	wordClasses: "dfE", wordMethods: "dE", wordReset: "",
}

// lineParser turns arguments into a command. After the first error its methods do nothing.
type lineParser struct {
	word      string
	options   map[string]string
	arguments []string
	err       string
}

// cut separates options from other arguments.
func (p *lineParser) splitOptions(all []string, known string) {
	for i := 0; i < len(all); i++ {
		option, isOption := strings.CutPrefix(all[i], "-")
		if !isOption || option == "" {
			p.arguments = append(p.arguments, all[i])
			continue
		}
		at := strings.Index(known, option)
		if len(option) != 1 || at < 0 {
			p.fail(option + " is not a recognized option")
			return
		}
		value := ""
		if strings.HasPrefix(known[at+1:], ":") && i+1 < len(all) {
			i++
			value = all[i]
		}
		p.options["-"+option] = value
	}
}

func (p *lineParser) fail(words string) {
	if p.err == "" {
		p.err = words
	}
}

func (p *lineParser) has(option string) bool { _, ok := p.options[option]; return ok }

// number returns the value of an option, or without if the option is missing.
func (p *lineParser) number(option string, without int32) int32 {
	value, ok := p.options[option]
	if !ok {
		return without
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		p.fail(fmt.Sprintf("Cannot parse argument '%s' of option %s", value, option[1:]))
	}
	return int32(n)
}

// pattern returns an argument as a pattern.
func (p *lineParser) pattern(index int, name string) javamethods.Pattern {
	if index >= len(p.arguments) {
		p.fail(name + " argument was missing.")
		return javamethods.Pattern{}
	}
	pattern, err := javamethods.NewPattern(p.arguments[index])
	if err != nil {
		p.fail(err.Error())
	}
	return pattern
}

func (p *lineParser) target() javamethods.Target {
	return javamethods.Target{
		Class: p.pattern(0, "class-pattern"), Method: p.pattern(1, "method-pattern"), Regexp: p.has(optionRegexp),
	}
}

// noMore fails if there are more arguments: they would be expressions.
func (p *lineParser) limitArguments(arguments int) {
	if len(p.arguments) > arguments {
		p.fail("expressions are not played")
	}
}

func (p *lineParser) command() (javamethods.Command, Silence) {
	p.limitArguments(2)
	switch p.word {
	case wordVersion:
		return javamethods.VersionCommand{}, Unchanged
	case wordSession:
		return javamethods.SessionsCommand{}, p.silence()
	case wordMonitor:
		const usual = 120
		return javamethods.MonitorCommand{Target: p.target(), Cycle: time.Duration(p.number(optionCycle, usual)) * time.Second}, Unchanged
	case wordTrace:
		return javamethods.TraceCommand{Target: p.target(), Limit: p.limit()}, Unchanged
	case wordStack:
		return javamethods.StackCommand{Target: p.target(), Limit: p.limit()}, Unchanged
	case wordRecord:
		return p.record(), Unchanged
	case wordClasses:
		return javamethods.ClassesCommand{
			Class: p.pattern(0, "class-pattern"), Regexp: p.has(optionRegexp), Fields: p.has(optionFields),
		}, Unchanged
	case wordMethods:
		if len(p.arguments) == 1 {
			p.arguments = append(p.arguments, "*")
		}
		return javamethods.MethodsCommand{Target: p.target()}, Unchanged
	default:
		// The server ignores all arguments of reset.
		every, _ := javamethods.NewPattern("*")
		return javamethods.ResetCommand{Class: every}, Unchanged
	}
}

func (p *lineParser) limit() javamethods.Limit { return javamethods.Limit(p.number(optionLimit, 0)) }

func (p *lineParser) record() javamethods.Command {
	switch {
	case p.has(optionRecord):
		return javamethods.RecordCommand{Target: p.target(), Limit: p.limit()}
	case p.has(optionList):
		return javamethods.RecordsCommand{}
	case p.has(optionIndex):
		return javamethods.RecordDetailCommand{Index: int64(p.number(optionIndex, 0))}
	}
	p.fail("Argument(s) is/are expected, type 'help tt' to read usage")
	return javamethods.RecordsCommand{}
}

func (p *lineParser) silence() Silence {
	switch value, has := p.options[optionSilent]; {
	case !has:
		return Unchanged
	case value == "false":
		return Loud
	default:
		return Silent
	}
}
