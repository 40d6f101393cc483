// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sharedvalue

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// shared returns two values with the same content.
func shared(t *testing.T, set func(pcommon.Value)) (one, other pcommon.Value) {
	t.Helper()
	one, other = pcommon.NewValueEmpty(), pcommon.NewValueEmpty()
	set(one)
	content := New().Content(one)
	require.True(t, content.IsKnown(), "the layout of pdata has changed: adapt this package")
	content.Set(other)
	return one, other
}

func TestValuesHaveTheSameContentWithoutAnAllocation(t *testing.T) {
	for name, set := range map[string]func(pcommon.Value){
		"text":   func(v pcommon.Value) { v.SetStr("text") },
		"number": func(v pcommon.Value) { v.SetInt(7) },
	} {
		one, other := shared(t, set)
		assert.True(t, one.Equal(other), name)
		content := New().Content(one)
		assert.Zero(t, testing.AllocsPerRun(10, func() { content.Set(other) }), name)
	}
}

// Every function of pdata that changes a value leaves the other one unchanged.
func TestAChangedValueLeavesTheOtherUnchanged(t *testing.T) {
	setters := map[string]func(pcommon.Value){
		"SetStr":        func(v pcommon.Value) { v.SetStr("changed") },
		"SetInt":        func(v pcommon.Value) { v.SetInt(8) },
		"SetDouble":     func(v pcommon.Value) { v.SetDouble(8) },
		"SetBool":       func(v pcommon.Value) { v.SetBool(true) },
		"SetEmptyBytes": func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte("changed")) },
		"SetEmptyMap":   func(v pcommon.Value) { v.SetEmptyMap().PutStr("key", "changed") },
		"SetEmptySlice": func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetStr("changed") },
		"FromRaw":       func(v pcommon.Value) { _ = v.FromRaw("changed") },
		"CopyTo, text":  func(v pcommon.Value) { pcommon.NewValueStr("changed").CopyTo(v) },
		"CopyTo":        func(v pcommon.Value) { pcommon.NewValueInt(8).CopyTo(v) },
		"MoveTo":        func(v pcommon.Value) { pcommon.NewValueStr("changed").MoveTo(v) },
		"moved away":    func(v pcommon.Value) { v.MoveTo(pcommon.NewValueEmpty()) },
	}
	for name, change := range setters {
		one, other := shared(t, func(v pcommon.Value) { v.SetStr("text") })
		change(one)
		assert.Equal(t, "text", other.Str(), name)
		one, other = shared(t, func(v pcommon.Value) { v.SetInt(7) })
		change(one)
		assert.EqualValues(t, 7, other.Int(), name)
	}
}

// record makes a log record with a body and attributes, and another one that shares them.
func record(t *testing.T) (one, other plog.LogRecord) {
	t.Helper()
	records := plog.NewLogRecordSlice()
	one, other = records.AppendEmpty(), records.AppendEmpty()
	one.Body().SetStr("body")
	one.Attributes().PutStr("text", "text")
	one.Attributes().PutInt("number", 7)
	sharer := New()
	sharer.Content(one.Body()).Set(other.Body())
	for key, v := range one.Attributes().All() {
		sharer.Content(v).Set(other.Attributes().PutEmpty(key))
	}
	return records.At(0), records.At(1)
}

func TestAChangedRecordLeavesTheOtherUnchanged(t *testing.T) {
	for name, change := range map[string]func(plog.LogRecord){
		"the attributes are set": func(r plog.LogRecord) {
			r.Attributes().PutStr("text", "changed")
			r.Attributes().PutInt("number", 8)
			r.Body().SetStr("changed")
		},
		"the attributes are emptied": func(r plog.LogRecord) {
			r.Attributes().PutEmpty("text")
			r.Attributes().PutEmptyMap("number")
		},
		"the attributes are removed": func(r plog.LogRecord) {
			r.Attributes().Remove("text")
			r.Attributes().RemoveIf(func(string, pcommon.Value) bool { return true })
		},
		"the attributes are cleared": func(r plog.LogRecord) { r.Attributes().Clear() },
		"another record is copied into it": func(r plog.LogRecord) {
			changed := plog.NewLogRecord()
			changed.Body().SetStr("changed")
			changed.Attributes().PutStr("text", "changed")
			changed.Attributes().PutInt("number", 8)
			changed.CopyTo(r)
		},
		"another record is moved into it": func(r plog.LogRecord) { plog.NewLogRecord().MoveTo(r) },
	} {
		one, other := record(t)
		change(one)
		assert.Equal(t, "body", other.Body().Str(), name)
		assert.Equal(t, map[string]any{"text": "text", "number": int64(7)}, other.Attributes().AsRaw(), name)
	}
}

func TestNothingIsSharedInAnotherLayout(t *testing.T) {
	assert.True(t, isLayoutKnown(reflect.TypeFor[pcommon.Value]()))
	for _, value := range []any{
		0, struct{}{}, struct{ of int }{}, struct{ of *int }{}, struct{ of *struct{} }{}, struct{ of *struct{ value int } }{},
		struct {
			of *struct{ value interface{ String() string } }
		}{}, struct{ of *struct{ value, other any } }{},
	} {
		assert.False(t, isLayoutKnown(reflect.TypeOf(value)), "%T", value)
	}
	v := pcommon.NewValueStr("text")
	assert.False(t, Sharer{}.Content(v).IsKnown())
}

func TestNothingIsSharedIfASetterWritesIntoTheContent(t *testing.T) {
	assert.True(t, settersReplace(setters))
	writes := func(v pcommon.Value) {
		other := pcommon.NewValueStr("changed")
		text := reflect.ValueOf(*reference(v)).Elem().Field(0)
		if text.Kind() == reflect.String {
			text.SetString(other.Str())
		}
	}
	assert.False(t, settersReplace(append(slices.Clone(setters), writes)))
}

func TestNothingIsSharedIfPdataUsesOldValuesAgain(t *testing.T) {
	found := false
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) { found = found || g.ID() == poolingGate })
	assert.True(t, found, "pdata has no such gate any more")
	gates := featuregate.NewRegistry()
	gates.MustRegister(poolingGate, featuregate.StageAlpha)
	assert.False(t, isPooling(gates))
	require.NoError(t, gates.Set(poolingGate, true))
	assert.True(t, isPooling(gates))
}
