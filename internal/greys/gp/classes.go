// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"github.com/callbraid/callbraid/internal/javamethods"
)

// readClasses reads the reply to sc ("搜索已加载类").
func (d *decoder) readClasses() {
	d.readItems(func() {
		var c javamethods.Class
		if d.readClass(&c); d.delivering {
			d.deliver(&c)
		}
	})
}

func (d *decoder) readClass(c *javamethods.Class) {
	at := d.at
	d.members(func(key []byte) {
		switch string(key) {
		case "classname":
			c.Name = d.name()
		case "detail":
			d.members(func(key []byte) { d.readClassDetail(c, key) })
		case "fields":
			d.elements(func() {
				d.limit(len(c.Fields), maxMembers)
				c.Fields = append(c.Fields, d.readField())
			})
		default:
			d.skip()
		}
	})
	d.require(c.Name != "", at, "classname")
}

func (d *decoder) readClassDetail(c *javamethods.Class, key []byte) {
	switch string(key) {
	case "code-source":
		c.CodeSource = d.name()
	case "modifier":
		c.Modifier = d.name()
	case "annotations":
		c.Annotations = d.list()
	case "interfaces":
		c.Interfaces = d.list()
	case "super-class":
		c.Super = d.name()
	case "class-loader":
		c.Loaders = d.list()
	default:
		if kind := kindOf(key); kind == "" {
			d.skip()
		} else if d.boolean() {
			c.Kinds = append(c.Kinds, kind)
		}
	}
}

// kinds are the kinds of classes. The members of a detail have "is-" before them.
var kinds = [...]string{
	"interface", "annotation", "enum", "anonymous-class", "array", "local-class", "member-class", "primitive", "synthetic",
}

// kindOf returns the kind that a member stands for; empty means none.
func kindOf(member []byte) string {
	for _, kind := range kinds {
		if string(member) == "is-"+kind {
			return kind
		}
	}
	return ""
}

func (d *decoder) readField() (f javamethods.Field) {
	at := d.at
	d.members(func(key []byte) {
		switch string(key) {
		case "modifier":
			f.Modifier = d.name()
		case "type":
			f.Type = d.name()
		case "name":
			f.Name = d.name()
		case "value":
			f.Value = d.words()
		default:
			d.skip()
		}
	})
	d.require(f.Name != "", at, "name")
	return f
}

// readMethods reads the reply to sm ("搜索已经加载类方法").
func (d *decoder) readMethods() { d.readItems(d.readMethodsOfClass) }

// readMethodsOfClass reads the methods of one class. The name of the class can follow them.
func (d *decoder) readMethodsOfClass() {
	at, class := d.at, ""
	d.methods = reused(d.methods)
	d.members(func(key []byte) {
		switch string(key) {
		case "classname":
			class = d.name()
		case "methods":
			d.elements(func() {
				d.limit(len(d.methods), maxMembers)
				d.methods = append(d.methods, d.readMethod())
			})
		default:
			d.skip()
		}
	})
	d.require(class != "", at, "classname")
	if !d.delivering {
		return
	}
	for i := range d.methods {
		d.methods[i].Class = class
		d.deliver(&d.methods[i])
	}
}

func (d *decoder) readMethod() (m javamethods.Method) {
	at := d.at
	d.members(func(key []byte) {
		switch string(key) {
		case "method-name":
			m.Name = d.name()
		case "modifier":
			m.Modifier = d.name()
		case "annotation":
			m.Annotations = d.list()
		case "exception":
			m.Exceptions = d.list()
		case "parameters":
			m.Parameters = d.list()
		case "return":
			m.Return = d.name()
		default:
			d.skip()
		}
	})
	d.require(m.Name != "", at, "method-name")
	return m
}
