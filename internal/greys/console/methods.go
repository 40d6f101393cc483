// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"strings"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// methodsBlock reads the table of methods:
//
//	+-----------...-+-----------------...
//	| DECLARED-CLASS | VISIBLE-METHOD
//	+-----------...-+-----------------...
//	| demo.Shop      | declaring-class : class demo.Shop
//	|                |   gaMethod-name : checkout
//	|                |        modifier : public
//	|                |      annotation :
//	|                |      parameters : java.lang.String
//	|                |                   int
//	|                |          return : java.lang.String
//	|                |      exceptions : java.lang.Exception
//
// The text on the right names the class that declares the method. It can be a parent of the requested class.
type methodsBlock struct {
	*output
	definite
	pairs
	headed bool
	reply  javamethods.Method
}

var methodsStyle = tableStyle{columns: []column{{width: 30}, {width: 100}}, padding: 1, bottom: true}

// Names in the lines of a method. All of them end in the same column.
const (
	methodClass       = "declaring-class"
	methodName        = "gaMethod-name"
	methodModifier    = "modifier"
	methodAnnotations = "annotation"
	methodParameters  = "parameters"
	methodReturn      = "return"
	methodExceptions  = "exceptions"
	methodsHead       = "DECLARED-CLASS"
	methodsHeadRight  = "VISIBLE-METHOD"
)

func (b *methodsBlock) line(text []byte) error { return b.pairs.line(text, b) }

func (b *methodsBlock) end() error {
	if err := b.finish(); err != nil {
		return err
	}
	if !b.headed {
		return unexpected("a table of methods", nil)
	}
	return nil
}

// pair reads a method, or the names of the columns.
func (b *methodsBlock) pair(_ []byte, value *cell) error {
	text := value.joined(beginsMethodLine)
	if !b.headed {
		if b.headed = string(text) == methodsHeadRight; !b.headed {
			return unexpected("a table's column "+methodsHeadRight, text)
		}
		return nil
	}
	r := &b.reply
	*r = javamethods.Method{Annotations: reused(r.Annotations), Parameters: reused(r.Parameters), Exceptions: reused(r.Exceptions)}
	name := ""
	for line, rest := nextLine(text); len(line)+len(rest) > 0; line, rest = nextLine(rest) {
		key, part, ok := keyed(line, len(methodClass))
		if !ok {
			return unexpected("a line of a method: name : value", line)
		}
		if len(key) > 0 {
			name = b.names.Intern(key)
		}
		b.setValue(name, part)
	}
	if r.Class == "" || r.Name == "" {
		return unexpected("a method with "+methodClass+" and "+methodName, text)
	}
	b.output.reply(r)
	return nil
}

func beginsMethodLine(line []byte) bool { return beginsKeyed(line, len(methodClass)) }

// setValue stores one line of a method.
func (b *methodsBlock) setValue(name string, text []byte) {
	if len(text) == 0 {
		return
	}
	r := &b.reply
	switch name {
	case methodClass:
		// Java writes the kind before the name: "class demo.Shop".
		r.Class = b.names.Intern(text[bytes.LastIndexByte(text, ' ')+1:])
	case methodName:
		r.Name = b.names.Intern(text)
	case methodModifier:
		r.Modifier = b.names.Intern(text)
	case methodAnnotations:
		r.Annotations = b.names.listed(r.Annotations, text)
	case methodParameters:
		r.Parameters = append(r.Parameters, b.names.Intern(text))
	case methodReturn:
		r.Return = b.names.Intern(text)
	case methodExceptions:
		r.Exceptions = append(r.Exceptions, b.names.Intern(text))
	}
}

// AppendMethods adds the table of methods.
func AppendMethods(b []byte, methods []javamethods.Method) []byte {
	rows := [][]string{{methodsHead, methodsHeadRight}}
	for _, m := range methods {
		rows = append(rows, []string{m.Class, keyedText(0,
			[2]string{methodClass, "class " + m.Class}, [2]string{methodName, m.Name}, [2]string{methodModifier, m.Modifier},
			[2]string{methodAnnotations, strings.Join(m.Annotations, ",")}, [2]string{methodParameters, strings.Join(m.Parameters, "\n")},
			[2]string{methodReturn, m.Return}, [2]string{methodExceptions, strings.Join(m.Exceptions, "\n")},
		)})
	}
	return appendTable(b, methodsStyle, rows)
}
