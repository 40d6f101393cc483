// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit/capturefile"
)

var captures = []string{"released-30s", "documented-30s", "samples"}

// malformed is the one captured message that is broken.
const malformed = "malformed-array-count-blt.bin"

// files are the files of a capture.
func files(tb testing.TB, name string) map[string][]byte {
	tb.Helper()
	read := func(r io.ReaderAt, size int64) (*map[string][]byte, error) {
		files, err := capturefile.Unpack(r, size, capturefile.Limits{File: 16 << 20, All: 64 << 20}, func(string) bool { return true })
		return &files, err
	}
	files, err := capturefile.Open("../../testdata/rbkit/"+name+".zip", read)
	require.NoError(tb, err)
	return *files
}

// isPublished and isReply classify the files of a capture.
func isPublished(name string) bool {
	return strings.HasSuffix(name, ".bin") && !isReply(name) && name != malformed
}

func isReply(name string) bool {
	return strings.HasSuffix(name, ".bin") && strings.Contains(name, "rep")
}

// eachMessage calls do with every message of all captures that is published, by name.
func eachMessage(tb testing.TB, do func(name string, message, json []byte)) {
	tb.Helper()
	for _, capture := range captures {
		all := files(tb, capture)
		names := []string{}
		for name := range all {
			if isPublished(name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			do(capture+"/"+name, all[name], all[strings.TrimSuffix(name, ".bin")+".json"])
		}
	}
}

// values is a message as its JSON has it: maps by the text of their key.
type values = map[string]any

// decodeValues reads a message to its end, into values.
func decodeValues(tb testing.TB, message []byte) values {
	tb.Helper()
	dialect, err := DialectOf(message)
	require.NoError(tb, err)
	var r Reader
	require.NoError(tb, r.Open(dialect, message))
	collectionType, _ := dialect.number(collection)
	h := r.Header()
	require.True(tb, h.Counted)
	events := []any{}
	var objects *[]any // of the part that is read
	for r.Next() {
		e := r.Event()
		if e.Kind == DumpedObject {
			*objects = append(*objects, objectValues(e.Object))
			continue
		}
		v := values{"0": float64(e.Type), "1": float64(e.Time)}
		switch e.Kind {
		case ObjectSpaceDump:
			objects = &[]any{}
			v["10"], v["11"], v["2"] = float64(e.Part.Correlation), float64(e.Part.Objects), objects
		case GCStart, GCEndMark, GCEndSweep:
		default:
			v["2"] = payloadValues(tb, dialect, e)
		}
		events = append(events, v)
	}
	require.NoError(tb, r.Err())
	require.Len(tb, events, h.Events)
	for _, e := range events {
		if objects, ok := e.(values)["2"].(*[]any); ok {
			e.(values)["2"] = *objects
		}
	}
	return values{"0": float64(collectionType), "1": float64(h.Time), "9": float64(h.Counter), "2": events}
}

func payloadValues(tb testing.TB, dialect Dialect, e *Event) any {
	switch e.Kind {
	case ObjectCreated:
		return values{"3": float64(e.Object.ID), "4": textValue(e.Object.Class)}
	case ObjectDestroyed:
		return values{"3": float64(e.Object.ID)}
	case GCStats:
		return statValues(e.Stats)
	case CPUSample:
		return frameValues(e.Frames, true, dialect == Released)
	case AllocationSnapshot:
		return snapshotValues(e.Snapshot)
	default:
		tb.Fatalf("expected no event of kind %s", e.Kind)
		return nil
	}
}

func textValue(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func objectValues(o Object) values {
	references := []any{}
	for id := range o.References.All() {
		references = append(references, float64(id))
	}
	v := values{"3": float64(o.ID), "4": textValue(o.Class), "5": references, "6": textValue(o.File), "7": nil, "8": float64(o.Size)}
	if o.File != nil {
		v["7"] = float64(o.Line)
	}
	return v
}

// statValues have no names without a number.
func statValues(s Stats) values {
	v := values{}
	for name, number := range s.All() {
		v[string(name)] = float64(number.Integer) + number.Float
	}
	return v
}

func frameValues(frames Frames, label, thread bool) []any {
	all := []any{}
	for f := range frames.All() {
		v := values{"12": textValue(f.Method), "6": textValue(f.File), "7": float64(f.Line), "14": 0.0}
		if f.Singleton {
			v["14"] = 1.0
		}
		if label {
			v["13"] = textValue(f.Label)
		}
		if thread {
			v["15"] = float64(f.Thread)
		}
		all = append(all, v)
	}
	return all
}

func snapshotValues(s Snapshot) values {
	stacks, files := values{}, values{}
	for id, frames := range s.AllStacks() {
		stacks[fmt.Sprint(id)] = frameValues(frames, false, false)
	}
	for a := range s.AllAllocations() {
		file := string(a.File)
		if files[file] == nil {
			files[file] = values{}
		}
		counts := any(nil)
		if a.Stacks.Len() > 0 {
			byStack := values{}
			for id, count := range a.Stacks.All() {
				byStack[fmt.Sprint(id)] = float64(count)
			}
			counts = byStack
		}
		class := string(a.Class)
		if a.Class == nil {
			class = "(null)"
		}
		files[file].(values)[fmt.Sprintf("%d %s %d", a.Line, class, a.Size)] = values{"17": float64(a.Count), "16": counts}
	}
	return values{"16": stacks, "18": files}
}

// withoutMissing removes statistics that a Ruby doesn't have from a message.
func withoutMissing(message values) {
	for _, e := range message["2"].([]any) {
		if payload, ok := e.(values)["2"].(values); ok {
			for name, value := range payload {
				if value == "" {
					delete(payload, name)
				}
			}
		}
	}
}

func TestEveryCapturedMessageHasTheValuesOfItsJSON(t *testing.T) {
	compared, missing := 0, 0
	eachMessage(t, func(name string, message, text []byte) {
		got := decodeValues(t, message)
		if text == nil {
			missing++ // decoded to the end, at least
			return
		}
		var want values
		require.NoError(t, json.Unmarshal(text, &want), name)
		withoutMissing(want)
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %.2000s", name, cmp.Diff(want, got))
		}
		compared++
	})
	t.Logf("%d messages compared, %d without JSON", compared, missing)
	require.Equal(t, 103, compared)
}

func TestEveryCapturedReplyHasTheValuesOfItsJSON(t *testing.T) {
	handshakes := 0
	for _, capture := range captures {
		all := files(t, capture)
		for name, reply := range all {
			if !isReply(name) {
				continue
			}
			text, isHandshake := all[strings.TrimSuffix(name, ".bin")+".json"]
			if !isHandshake {
				require.NoError(t, CheckOK(reply), name)
				continue
			}
			h, err := DecodeHandshake(reply)
			require.NoError(t, err, name)
			want := Released
			if strings.Contains(capture+name, "documented") {
				want = Documented
			}
			require.Equal(t, want, h.Dialect, name)
			var message values
			require.NoError(t, json.Unmarshal(text, &message))
			require.Equal(t, message["1"], float64(h.Time))
			flag := map[bool]float64{true: 1}
			require.Equal(t, message["2"], values{
				"rbkit_server_version": h.ServerVersion, "rbkit_protocol_version": h.ProtocolVersion,
				"process_name": h.ProcessName, "pwd": h.WorkingDirectory, "pid": float64(h.PID),
				"object_trace_enabled": flag[h.ObjectTraceEnabled], "cpu_profiling_enabled": flag[h.CPUProfiling],
				"clock_type": h.Clock, "cpu_profiling_mode": h.CPUProfilingMode,
			})
			require.Equal(t, reply, AppendHandshake(nil, h), name)
			handshakes++
		}
	}
	require.Equal(t, 10, handshakes)
}

// encodeAgain writes the events of a reader.
func encodeAgain(tb testing.TB, message []byte) []byte {
	tb.Helper()
	dialect, err := DialectOf(message)
	require.NoError(tb, err)
	var r Reader
	require.NoError(tb, r.Open(dialect, message))
	c := NewCollection(dialect)
	var part []DumpObject
	for r.Next() {
		e := r.Event()
		switch e.Kind {
		case ObjectSpaceDump:
			part = part[:0]
			if e.Part.Here == 0 {
				err = c.Dump(e.Time, e.Part.Correlation, e.Part.Objects, nil)
			}
		case DumpedObject:
			o := e.Object
			part = append(part, DumpObject{ID: o.ID, Class: o.Class, References: slices.Collect(o.References.All()), File: o.File, Line: o.Line, Size: o.Size})
			if len(part) == e.Part.Here {
				err = c.Dump(e.Time, e.Part.Correlation, e.Part.Objects, part)
			}
		default:
			err = appendEvent(c, e)
		}
		require.NoError(tb, err)
	}
	require.NoError(tb, r.Err())
	return c.AppendTo(nil, r.Header().Time, r.Header().Counter)
}

// appendEvent writes an event that is no dump.
func appendEvent(c *Collection, e *Event) error {
	switch e.Kind {
	case ObjectCreated:
		return c.Created(e.Time, e.Object.ID, e.Object.Class)
	case ObjectDestroyed:
		return c.Destroyed(e.Time, e.Object.ID)
	case CPUSample:
		return c.Sample(e.Time, slices.Collect(e.Frames.All()))
	case GCStats:
		return c.Stats(e.Time, rewriteStats(e.Stats))
	case AllocationSnapshot:
		stacks, files := rewriteSnapshot(e.Snapshot)
		return c.Snapshot(e.Time, stacks, files)
	default:
		return c.GC(e.Kind, e.Time)
	}
}

// rewriteStats are the numbers, and at its place the one name that Ruby 3.1 doesn't have.
func rewriteStats(s Stats) (stats []Stat) {
	for name, number := range s.All() {
		stats = append(stats, Stat{Name: string(name), Value: uint64(number.Integer)})
		if string(name) == "heap_final_slots" {
			stats = append(stats, Stat{Name: "heap_swept_slots", Missing: true})
		}
	}
	return stats
}

func rewriteSnapshot(s Snapshot) (stacks []Stack, files []FileAllocations) {
	for id, frames := range s.AllStacks() {
		stacks = append(stacks, Stack{ID: id, Frames: slices.Collect(frames.All())})
	}
	for a := range s.AllAllocations() {
		if len(files) == 0 || string(files[len(files)-1].File) != string(a.File) {
			files = append(files, FileAllocations{File: a.File})
		}
		place := PlaceAllocations{Line: a.Line, Class: a.Class, Size: a.Size, Count: a.Count}
		for id, count := range a.Stacks.All() {
			place.Stacks = append(place.Stacks, StackCount{ID: id, Count: count})
		}
		last := &files[len(files)-1]
		last.Allocations = append(last.Allocations, place)
	}
	return stacks, files
}

func TestEveryCapturedMessageIsWrittenAsItWas(t *testing.T) {
	messages := 0
	eachMessage(t, func(name string, message, _ []byte) {
		again := encodeAgain(t, message)
		at := 0
		for at < len(message) && at < len(again) && message[at] == again[at] {
			at++
		}
		if string(message) != string(again) {
			t.Errorf("%s: expected % x, got % x from byte %d on", name, message[at:min(at+16, len(message))], again[at:min(at+16, len(again))], at)
		}
		messages++
	})
	require.Equal(t, 175, messages)
}
