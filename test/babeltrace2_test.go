// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The output of babeltrace2 with all names, as events. It has no types of numbers, six digits of floating point numbers,
// and no names of the selected options of variants.

// printedEvent is a line of the output.
type printedEvent struct {
	// time is the Unix time in seconds, with nine digits after the point, or "" without clock.
	time, name string
	// level is the name of the log level, or "".
	level  string
	scopes map[string]printedStruct
}

// The kinds of printed values. A text has no quotation marks and no escapes.
type (
	printedNumber string
	printedText   string
	printedBool   bool
	// printedLabel is an enumeration: all labels of its number.
	printedLabel struct {
		labels []string
		number printedNumber
	}
	printedStruct []printedMember
	printedList   []any
	// printedOption is the selected option of a variant or of an optional field. Its value is nil if there is none.
	printedOption struct{ value any }
	printedMember struct {
		name  string
		value any
	}
)

var (
	// printedHead matches the begin of a line, up to its scopes.
	printedHead  = regexp.MustCompile(`^(?:timestamp = (-?[0-9.]+), )?(?:.*?, )?name = (.*?), (?:(stream\.packet\.context|stream\.event\.context|event\.context|event\.fields) = \{|$)`)
	printedLevel = regexp.MustCompile(`(?:^|, )loglevel = ([A-Z_]+) \(`)
	printedName  = regexp.MustCompile(`^([^{}\[\]()",=]+) = `)
	printedBare  = regexp.MustCompile(`^[-+0-9a-zA-Zx._]+`)
)

// readPrinted reads a line.
func readPrinted(line string) (e printedEvent, err error) {
	head := printedHead.FindStringSubmatchIndex(line)
	if head == nil {
		return e, fmt.Errorf("expected an event of babeltrace2, got %q", line)
	}
	group := func(i int) string {
		if head[2*i] < 0 {
			return ""
		}
		return line[head[2*i]:head[2*i+1]]
	}
	e = printedEvent{time: group(1), name: group(2), scopes: map[string]printedStruct{}}
	if level := printedLevel.FindStringSubmatch(line[:head[4]]); level != nil {
		e.level = level[1]
	}
	p := &printedReader{text: line, at: len(line)}
	if head[6] >= 0 {
		p.at = head[6]
	}
	defer func() {
		if failure, ok := recover().(printedFailure); ok {
			err = fmt.Errorf("at byte %d of %q: %s", p.at, line, string(failure))
		}
	}()
	for p.at < len(line) {
		scope := p.name()
		e.scopes[scope] = p.structure()
		p.skip(", ")
	}
	return e, nil
}

// printedReader reads values from the begin of a text to its end. Inside, an error is a panic.
type printedReader struct {
	text string
	at   int
}

type printedFailure string

func (p *printedReader) fail(expected string) {
	panic(printedFailure(fmt.Sprintf("expected %s, got %.20q", expected, p.text[p.at:])))
}

func (p *printedReader) skip(text string) bool {
	if !strings.HasPrefix(p.text[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *printedReader) expect(text string) {
	if !p.skip(text) {
		p.fail(fmt.Sprintf("%q", text))
	}
}

func (p *printedReader) name() string {
	m := printedName.FindStringSubmatch(p.text[p.at:])
	if m == nil {
		p.fail("a name")
	}
	p.at += len(m[0])
	return m[1]
}

func (p *printedReader) value() any {
	switch {
	case p.skip("<none>"):
		return printedOption{}
	case strings.HasPrefix(p.text[p.at:], "{"):
		if rest := p.text[p.at:]; strings.HasPrefix(rest, "{ }") || printedName.MatchString(strings.TrimPrefix(rest, "{ ")) {
			return p.structure()
		}
		p.expect("{ ")
		option := printedOption{p.value()}
		p.expect(" }")
		return option
	case strings.HasPrefix(p.text[p.at:], "["):
		list := printedList{}
		p.items("[", "]", func() {
			p.expect(fmt.Sprintf("[%d] = ", len(list)))
			list = append(list, p.value())
		})
		return list
	case strings.HasPrefix(p.text[p.at:], `"`):
		return printedText(p.quoted())
	case p.skip("( "):
		return p.label()
	}
	bare := printedBare.FindString(p.text[p.at:])
	if bare == "" {
		p.fail("a value")
	}
	p.at += len(bare)
	if bare == "true" || bare == "false" {
		return printedBool(bare == "true")
	}
	return printedNumber(bare)
}

func (p *printedReader) structure() printedStruct {
	s := printedStruct{}
	p.items("{", "}", func() {
		name := p.name()
		s = append(s, printedMember{name, p.value()})
	})
	return s
}

// items reads items separated by commas.
func (p *printedReader) items(open, end string, one func()) {
	p.expect(open + " ")
	for !p.skip(end) {
		one()
		if !p.skip(", ") {
			p.expect(" ")
		}
	}
}

// label reads: "A" : container = 1 ), or { "A", "B" } : container = 1 ), or <unknown> : container = 1 ). Flags have |
// between them.
func (p *printedReader) label() (l printedLabel) {
	for !p.skip(": container = ") {
		switch {
		case p.skip("<unknown> "), p.skip("{ "), p.skip("} "), p.skip(", "), p.skip("| "), p.skip(" "):
		default:
			l.labels = append(l.labels, p.quoted())
		}
	}
	l.number, _ = p.value().(printedNumber)
	p.expect(" )")
	return l
}

// printedEscapes are the escapes of one character.
var printedEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '0': 0,
}

// quoted reads a text in quotation marks.
func (p *printedReader) quoted() string {
	p.expect(`"`)
	var b []byte
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			return string(b)
		case '\\':
			p.at++
			if p.at == len(p.text) {
				p.fail("an escape")
			}
			c = p.text[p.at]
			if e, ok := printedEscapes[c]; ok {
				c = e
			}
			b = append(b, c)
		default:
			b = append(b, c)
		}
	}
	p.fail(`the closing "`)
	return ""
}

func TestTheOutputOfBabeltrace2IsRead(t *testing.T) {
	e, err := readPrinted(`timestamp = -5.000000001, trace = a, , trace:hostname = vm, loglevel = TRACE_INFO (6), name = a, b, ` +
		`stream.packet.context = { cpu_id = 1 }, event.fields = { s = "a \"b\", c = \n", e = ( "A" : container = -3 ), ` +
		`m = ( { "A", "B" } : container = 0x1F ), u = ( <unknown> : container = 4 ), v = { { x = 1 } }, o = <none>, ` +
		`l = [ [0] = 1.5, [1] = { } ], w = { "t" }, b = true, z = [ ] }`)
	require.NoError(t, err)
	assert.Equal(t, []string{"-5.000000001", "a, b", "TRACE_INFO"}, []string{e.time, e.name, e.level})
	assert.Equal(t, printedStruct{{"cpu_id", printedNumber("1")}}, e.scopes["stream.packet.context"])
	assert.Equal(t, printedStruct{
		{"s", printedText("a \"b\", c = \n")}, {"e", printedLabel{[]string{"A"}, "-3"}}, {"m", printedLabel{[]string{"A", "B"}, "0x1F"}},
		{"u", printedLabel{nil, "4"}}, {"v", printedOption{printedStruct{{"x", printedNumber("1")}}}}, {"o", printedOption{}},
		{"l", printedList{printedNumber("1.5"), printedStruct{}}}, {"w", printedOption{printedText("t")}}, {"b", printedBool(true)}, {"z", printedList{}},
	}, e.scopes["event.fields"])
	for _, wrong := range []string{"", "name = x, event.fields = { a = }", `name = x, event.fields = { a = "`, "name = x, event.fields = { a = [ 1 ] }"} {
		_, err := readPrinted(wrong)
		assert.Error(t, err, wrong)
	}
}
