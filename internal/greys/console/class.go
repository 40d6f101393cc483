// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"slices"
	"strings"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// classBlock reads the tables of classes, each with a blank line below:
//
//	+--...-+--...
//	|                 class-info | demo.Shop
//	+--...-+--...
//	|               class-loader | jdk.internal.loader.ClassLoaders$AppClassLoader@30946e09
//	|                            |   `-jdk.internal.loader.ClassLoaders$PlatformClassLoader@4abbb61b
//	+--...-+--...
//	|                     fields | modifier : static
//	|                            |     type : int
//	|                            |     name : n
//	|                            |    value : 144
type classBlock struct {
	*output
	definite
	pairs
	named bool
	reply javamethods.Class
}

// classStyle is the layout of the table. classFieldWidth is the width of a line of a field.
var classStyle = tableStyle{columns: []column{{width: 50, right: true}, {width: 80}}, padding: 1, bottom: true}

const classFieldWidth = 50

// classKinds are the rows for the kinds of a class.
var classKinds = [...]struct{ row, kind string }{
	{"isInterface", "interface"}, {"isAnnotation", "annotation"}, {"isEnum", "enum"}, {"isAnonymousClass", "anonymous-class"},
	{"isArray", "array"}, {"isLocalClass", "local-class"}, {"isMemberClass", "member-class"}, {"isPrimitive", "primitive"},
	{"isSynthetic", "synthetic"},
}

// Names of rows.
const (
	className        = "class-info"
	classSource      = "code-source"
	classModifier    = "modifier"
	classAnnotations = "annotation"
	classInterfaces  = "interfaces"
	classSuper       = "super-class"
	classLoader      = "class-loader"
	classFields      = "fields"
)

func (b *classBlock) line(text []byte) error {
	if len(text) == 0 && b.state == atBorder {
		return b.complete()
	}
	if b.state == outside {
		r := &b.reply
		b.named = false
		*r = javamethods.Class{
			Kinds: r.Kinds[:0], Annotations: reused(r.Annotations), Interfaces: reused(r.Interfaces), Loaders: reused(r.Loaders),
			Fields: reused(r.Fields),
		}
	}
	return b.pairs.line(text, b)
}

func (b *classBlock) end() error {
	if b.state == outside {
		return nil
	}
	return b.complete()
}

func (b *classBlock) complete() error {
	if err := b.finish(); err != nil {
		return err
	}
	if !b.named {
		return unexpected("a table of a class with the row "+className, nil)
	}
	b.output.reply(&b.reply)
	return nil
}

// pair reads a row. It ignores rows with other names.
func (b *classBlock) pair(key []byte, value *cell) error {
	r := &b.reply
	switch string(key) {
	case className:
		b.named = true
		r.Name = b.names.Intern(value.joined(nil))
	case classSource:
		r.CodeSource = b.names.Intern(value.joined(nil))
	case classModifier:
		r.Modifier = b.names.Intern(value.joined(nil))
	case classAnnotations:
		r.Annotations = b.names.listed(r.Annotations, value.joined(nil))
	case classInterfaces:
		r.Interfaces = b.names.listed(r.Interfaces, value.joined(nil))
	case classSuper:
		r.Super = b.names.Intern(firstLine(value.joined(isRung)))
	case classLoader:
		text := value.joined(isRung)
		for line, rest := nextLine(text); len(line)+len(rest) > 0; line, rest = nextLine(rest) {
			r.Loaders = append(r.Loaders, b.names.Intern(bytes.TrimPrefix(bytes.TrimLeft(line, " "), []byte(rung))))
		}
	case classFields:
		return b.fields(value.joined(nil))
	default:
		return b.kind(string(key), value.joined(nil))
	}
	return nil
}

// kind reads a row for a kind of the class.
func (b *classBlock) kind(name string, text []byte) error {
	for _, k := range classKinds {
		if k.row != name {
			continue
		}
		is, ok := boolean(text)
		if !ok {
			return unexpected("true or false as "+name, text)
		}
		if is && len(b.reply.Kinds) < len(classKinds) {
			b.reply.Kinds = append(b.reply.Kinds, k.kind)
		}
	}
	return nil
}

// rung begins each line of a ladder, except the first.
const rung = "`-"

func isRung(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte(rung)) && bytes.HasPrefix(line, []byte("  "))
}

// ladder draws lines as a ladder.
func ladder(items []string) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteString(strings.Repeat("  ", i) + rung)
		}
		b.WriteString(item + "\n")
	}
	return b.String()
}

// Names in the lines of a field.
const (
	fieldModifier   = "modifier"
	fieldType       = "type"
	fieldName       = "name"
	fieldAnnotation = "annotation"
	fieldValue      = "value"
	staticWord      = "static"
)

// fields reads the lines of all fields, with a blank line between two fields. The first name shows the width of the
// names: they are wider if a field has annotations.
func (b *classBlock) fields(text []byte) error {
	const first, annotated = fieldModifier + keyedSeparator, "  " + fieldModifier + keyedSeparator
	var value cell
	var name string
	width := 0
	for line, rest := nextLine(text); len(line)+len(rest) > 0; line, rest = nextLine(rest) {
		switch {
		case bytes.HasPrefix(line, []byte(first)):
			width = len(fieldModifier)
		case bytes.HasPrefix(line, []byte(annotated)):
			width = len(fieldAnnotation)
		}
		key, part, ok := keyed(line, width)
		if !ok || width == 0 {
			return unexpected("a line of a field: name : value", line)
		}
		if len(key) > 0 {
			b.fieldValue(name, &value)
			name = b.names.Intern(key)
			value.reset()
			if name == fieldModifier {
				b.reply.Fields = append(b.reply.Fields, javamethods.Field{})
			}
		}
		value.addLine(part, classFieldWidth)
	}
	b.fieldValue(name, &value)
	return nil
}

// fieldValue stores a value of the last field.
func (b *classBlock) fieldValue(name string, value *cell) {
	if len(b.reply.Fields) == 0 {
		return
	}
	f := &b.reply.Fields[len(b.reply.Fields)-1]
	switch text := value.joined(nil); name {
	case fieldModifier:
		f.Modifier = b.names.Intern(text)
	case fieldType:
		f.Type = b.names.Intern(text)
	case fieldName:
		f.Name = b.names.Intern(text)
	case fieldValue:
		f.Value = javamethods.ValidText(text)
	}
}

// AppendClass adds the table of a class.
func AppendClass(b []byte, c *javamethods.Class) []byte {
	rows := [][]string{{className, c.Name}, {classSource, c.CodeSource}, {"name", c.Name}}
	for _, k := range classKinds {
		is := "false"
		if slices.Contains(c.Kinds, k.kind) {
			is = "true"
		}
		rows = append(rows, []string{k.row, is})
	}
	var super []string
	if c.Super != "" {
		super = append(super, c.Super)
	}
	var fields strings.Builder
	for _, f := range c.Fields {
		lines := [][2]string{{fieldModifier, f.Modifier}, {fieldType, f.Type}, {fieldName, f.Name}}
		if strings.Contains(f.Modifier, staticWord) {
			lines = append(lines, [2]string{fieldValue, f.Value})
		}
		fields.WriteString(keyedText(classFieldWidth, lines...) + "\n")
	}
	rows = append(rows, [][]string{
		{"simple-name", javamethods.SimpleName(c.Name)}, {classModifier, c.Modifier}, {classAnnotations, strings.Join(c.Annotations, ",")},
		{classInterfaces, strings.Join(c.Interfaces, ",")}, {classSuper, ladder(super)}, {classLoader, ladder(c.Loaders)},
		{classFields, fields.String()},
	}...)
	return append(appendTable(b, classStyle, rows), '\n')
}
