// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// lines returns the log records of an event: the body and the change.
func (b *bed) lines(event string) (lines []string) {
	for _, r := range b.Records(event) {
		line := r.Body().Str()
		if v, ok := r.Attributes().Get("greys.change"); ok {
			line += " " + v.Str()
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func TestOnlyChangesOfClassesAreReported(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Classes = []ClassesConfig{{Class: "demo.*"}}
		c.InventoryInterval = time.Second
	})
	s := script(t, b, ProtocolConsole)
	b.receiver.env.config.InventoryInterval = time.Millisecond
	b.start()
	list := func(classes ...*javamethods.Class) {
		a := s.expect("Classes demo.*")
		for _, c := range classes {
			a.answer(c)
		}
		a.end <- nil
	}
	shop := func(fields ...javamethods.Field) *javamethods.Class {
		return &javamethods.Class{Name: "demo.Shop", CodeSource: "/out/", Kinds: []string{"interface"}, Super: "java.lang.Object", Loaders: []string{"app@1", "platform@2"}, Fields: fields}
	}
	field := javamethods.Field{Modifier: "private,static", Type: "int", Name: "count", Value: "1"}
	lambda := &javamethods.Class{Kinds: []string{"synthetic"}, Interfaces: []string{"java.util.function.IntUnaryOperator"}}
	list(shop(), &javamethods.Class{Name: "demo.Pay"}, lambda)
	list(shop(), &javamethods.Class{Name: "demo.Pay"}, lambda)
	a := s.expect("Classes demo.*")
	assert.Equal(t, []string{"demo.Pay found", "demo.Shop found"}, b.lines("greys.class"))
	a.answer(shop(field))
	a.end <- nil
	field.Value = "2" // a value is no change
	list(shop(field))
	list(shop(field))
	s.expect("Classes demo.*")
	b.Shutdown()
	assert.Equal(t, []string{"demo.Pay found", "demo.Shop changed", "demo.Shop found"}, b.lines("greys.class"))
	assert.Equal(t, []string{"demo.Pay"}, b.lines("greys.class.gone"))
	last := b.Records("greys.class")[2].Attributes().AsRaw()
	assert.Equal(t, map[string]any{
		"greys.command": "classes", "greys.pattern": "demo.*", "greys.change": "changed", "java.class": "demo.Shop",
		"greys.class.code_source": "/out/", "greys.class.kinds": []any{"interface"}, "greys.class.super": "java.lang.Object",
		"greys.class.loaders": []any{"app@1", "platform@2"}, "greys.class.fields": []any{"private,static int count"},
	}, last)
}

func TestOnlyACompleteListShowsThatMethodsDisappeared(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Methods = []MethodsConfig{{TargetConfig: TargetConfig{Class: "demo.*", Method: "*"}, Limit: 2}}
		c.Limits.MaxInventory = 3
	})
	s := script(t, b, ProtocolConsole)
	b.receiver.env.config.InventoryInterval = time.Millisecond
	b.start()
	method := func(name string, parameters ...string) *javamethods.Method {
		return &javamethods.Method{Class: "demo.Shop", Name: name, Modifier: "public", Parameters: parameters, Return: "void"}
	}
	a := s.expect("Methods demo.* *")
	a.answer(method("a", "int"), method("a", "long"), method("c"), method("d"))
	<-a.over
	a = s.expect("Methods demo.* *")
	a.answer(method("c"), method("d"), method("e"))
	<-a.over
	a = s.expect("Methods demo.* *")
	a.answer(method("a", "int"))
	a.end <- nil
	s.expect("Methods demo.* *").end <- nil
	s.expect("Methods demo.* *")
	b.Shutdown()
	assert.Equal(t, []string{"demo.Shop.a(int) found", "demo.Shop.a(long) found", "demo.Shop.c() found"}, b.lines("greys.method"))
	assert.EqualValues(t, 1, b.point("inventory_dropped"))
	assert.Equal(t, []string{"demo.Shop.a(int)", "demo.Shop.a(long)", "demo.Shop.c()"}, b.lines("greys.method.gone"), "the complete list has none")
	require.Len(t, b.Records("greys.pattern.unmatched"), 1)
}

func TestListsRunOneAfterTheOther(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Classes = []ClassesConfig{{Class: "a.*"}, {Class: "b.*"}} })
	s := script(t, b, ProtocolConsole)
	b.start()
	first := s.next()
	s.expectNothing()
	first.end <- nil
	second := s.next()
	assert.NotEqual(t, describe(first.command), describe(second.command))
}

func TestStacksBecomeLogRecords(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Shop", "checkout", 0)} })
	s := script(t, b, ProtocolConsole)
	b.start()
	s.next().answer(affectedOne, &javamethods.CallStack{Thread: javamethods.Thread{Name: "main", ID: 1}, Frames: []javamethods.Frame{
		{Class: "demo.Shop", Method: "checkout", File: "Shop.java", Line: 12},
		{Class: "demo.Shop", Method: "main", Line: 7},
		{Class: "demo.Native", Method: "call", File: "Native.java", Line: -2},
		{Class: "demo.Shop", Method: "<clinit>", File: "Shop.java", Line: -1},
	}}, &javamethods.CallStack{})
	b.Shutdown()
	records := b.Records("greys.stack")
	require.Len(t, records, 1)
	assert.Equal(t, "demo.Shop.checkout", records[0].Body().Str())
	assert.Equal(t, map[string]any{
		"greys.command": "stack", "greys.pattern": "demo.Shop checkout", "thread.name": "main", "thread.id": int64(1),
		"code.function.name": "demo.Shop.checkout", "code.file.path": "Shop.java", "code.line.number": int64(12),
		"code.stacktrace": "\tat demo.Shop.checkout(Shop.java:12)\n\tat demo.Shop.main(Unknown Source)\n\tat demo.Native.call(Native Method)\n\tat demo.Shop.<clinit>(Shop.java)\n",
	}, records[0].Attributes().AsRaw())
}
