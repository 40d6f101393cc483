// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// AppendRecords adds the data of a reply with recorded calls.
func (w Writer) AppendRecords(to []byte, records []javamethods.Record) []byte {
	o := object{to: to, style: w.Style}
	o.within("{}", func() {
		o.array("items", len(records), func(i int) {
			r := &records[i]
			o.within("{}", func() {
				o.recordBegin(r, w.Location)
				o.recordFlags(r)
				o.recordTarget(r)
			})
		})
	})
	return o.to
}

// detail adds a recorded call, in the order of the document's sample.
func (o *object) detail(r *javamethods.RecordDetail, place *time.Location) {
	o.recordBegin(&r.Record, place)
	o.recordTarget(&r.Record)
	o.recordFlags(&r.Record)
	o.texts("parameters", r.Parameters)
	if r.Returned {
		o.text("return", r.Return)
	}
	if r.Threw {
		o.text("exception", r.Exception)
	}
}

func (o *object) recordBegin(r *javamethods.Record, place *time.Location) {
	if place == nil {
		place = time.UTC
	}
	o.number("index", r.Index)
	o.text("timestamp", r.Time.In(place).Format(localLayout))
	o.typed("cost", millis(int64(r.Cost)))
}

func (o *object) recordFlags(r *javamethods.Record) {
	o.boolean("is-return", r.Returned)
	o.boolean("is-exception", r.Threw)
}

func (o *object) recordTarget(r *javamethods.Record) {
	o.text("object", r.Object)
	o.text("classname", r.Class)
	o.text("method-name", r.Method)
}

// AppendClasses adds the data of a reply with classes.
func (w Writer) AppendClasses(to []byte, classes []javamethods.Class) []byte {
	o := object{to: to, style: w.Style}
	o.within("{}", func() {
		o.array("items", len(classes), func(i int) { o.class(&classes[i]) })
	})
	return o.to
}

func (o *object) class(c *javamethods.Class) {
	o.within("{}", func() {
		o.text("classname", c.Name)
		o.key("detail")
		o.within("{}", func() {
			o.text("code-source", c.CodeSource)
			for _, kind := range kinds {
				o.boolean("is-"+kind, slices.Contains(c.Kinds, kind))
			}
			o.text("modifier", c.Modifier)
			o.texts("annotations", c.Annotations)
			o.texts("interfaces", c.Interfaces)
			o.text("super-class", c.Super)
			o.texts("class-loader", c.Loaders)
		})
		o.array("fields", len(c.Fields), func(i int) {
			f := &c.Fields[i]
			o.within("{}", func() {
				o.text("modifier", f.Modifier)
				o.text("type", f.Type)
				o.text("name", f.Name)
				o.text("value", f.Value)
			})
		})
	})
}

// AppendMethods adds the data of a reply with methods. Methods of the same class have to be consecutive.
func (w Writer) AppendMethods(to []byte, methods []javamethods.Method) []byte {
	o := object{to: to, style: w.Style}
	classes := byClass(methods)
	o.within("{}", func() {
		o.array("items", len(classes), func(i int) { o.classMethods(classes[i]) })
	})
	return o.to
}

// byClass splits methods where the class changes.
func byClass(methods []javamethods.Method) (parts [][]javamethods.Method) {
	for begin := 0; begin < len(methods); {
		end := begin + 1
		for end < len(methods) && methods[end].Class == methods[begin].Class {
			end++
		}
		parts = append(parts, methods[begin:end])
		begin = end
	}
	return parts
}

func (o *object) classMethods(methods []javamethods.Method) {
	o.within("{}", func() {
		o.text("classname", methods[0].Class)
		o.array("methods", len(methods), func(i int) {
			m := &methods[i]
			o.within("{}", func() {
				o.text("method-name", m.Name)
				o.text("modifier", m.Modifier)
				o.texts("annotation", m.Annotations)
				o.texts("exception", m.Exceptions)
				o.texts("parameters", m.Parameters)
				o.text("return", m.Return)
			})
		})
	})
}
