// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/callbraid/callbraid/internal/rbkit/capture"
)

// captures are the recordings, with how many messages are there as JSON, too, and how many
// events the index says that there are.
var captures = map[string]struct{ decoded, events int }{
	"released-30s":   {60, 85542},
	"documented-30s": {24, 6193},
	"samples":        {19, 0},
}

func openCapture(t testing.TB, name string) *capture.Capture {
	t.Helper()
	c, err := capture.Open(filepath.Join("..", "..", "testdata", "rbkit", name+".zip"))
	require.NoError(t, err)
	return c
}

// jsonVisitor makes of events what their JSON has, in its order of keys aside.
type jsonVisitor struct {
	header  Header
	events  []any
	objects *[]any
	// stacks and files are those of the snapshot under way.
	stacks, files map[string]any
}

type object = map[string]any

func text(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func number(n uint64) any { return json.Number(strconv.FormatUint(n, 10)) }

func optional(n uint64, ok bool) any {
	if !ok {
		return nil
	}
	return number(n)
}

func (v *jsonVisitor) Message(h Header) { v.header = h }

// event adds one with a payload, if it is not nil.
func (v *jsonVisitor) event(t Type, millis int64, payload any) object {
	n, ok := v.header.Dialect.numberOf(t)
	if !ok {
		panic(fmt.Sprint("an event of the other dialect: ", t))
	}
	e := object{"0": number(n), "1": json.Number(fmt.Sprintf("%d.0", millis))}
	if payload != nil {
		e["2"] = payload
	}
	v.events = append(v.events, e)
	return e
}

func (v *jsonVisitor) ObjectCreated(millis int64, id uint64, class []byte) {
	v.event(ObjectCreated, millis, object{"3": number(id), "4": text(class)})
}

func (v *jsonVisitor) ObjectDestroyed(millis int64, id uint64) {
	v.event(ObjectDestroyed, millis, object{"3": number(id)})
}

func (v *jsonVisitor) GC(millis int64, what Type) { v.event(what, millis, nil) }

func (v *jsonVisitor) GCStats(millis int64, stats []Stat) {
	all := object{}
	for _, s := range stats {
		all[string(s.Key)] = ""
		if s.Known {
			all[string(s.Key)] = json.Number(strconv.FormatInt(s.Value, 10))
		}
	}
	v.event(GCStats, millis, all)
}

func (v *jsonVisitor) DumpPart(millis int64, part DumpPart) {
	v.objects = &[]any{}
	e := v.event(ObjectSpaceDump, millis, v.objects)
	e["10"], e["11"] = number(part.Correlation), number(part.Complete)
}

func (v *jsonVisitor) DumpObject(o *DumpedObject) {
	references := []any{}
	for id := range o.References.All() {
		references = append(references, number(id))
	}
	*v.objects = append(*v.objects, object{
		"3": number(o.ID), "4": text(o.Class), "5": references, "6": text(o.File),
		"7": optional(o.Line, o.HasLine), "8": optional(o.Size, o.HasSize),
	})
}

func (v *jsonVisitor) CPUSample(millis int64, frames []Frame) {
	v.event(CPUSample, millis, jsonFrames(frames, true))
}

func jsonFrames(frames []Frame, labelled bool) []any {
	all := []any{}
	for _, f := range frames {
		singleton := uint64(0)
		if f.Singleton {
			singleton = 1
		}
		o := object{"12": text(f.Method), "6": text(f.File), "7": number(f.Line), "14": number(singleton)}
		if labelled {
			o["13"] = text(f.Label)
		}
		if f.HasThread {
			o["15"] = number(f.Thread)
		}
		all = append(all, o)
	}
	return all
}

func (v *jsonVisitor) SnapshotBegin(millis int64) {
	v.stacks, v.files = object{}, object{}
	v.event(AllocationSnapshot, millis, object{"16": v.stacks, "18": v.files})
}

func (v *jsonVisitor) SnapshotStack(id uint64, frames []Frame) {
	v.stacks[strconv.FormatUint(id, 10)] = jsonFrames(frames, false)
}

func (v *jsonVisitor) SnapshotAllocation(a *Allocation) {
	sites, _ := v.files[string(a.File)].(object)
	if sites == nil {
		sites = object{}
		v.files[string(a.File)] = sites
	}
	class := "(null)"
	if a.Class != nil {
		class = string(a.Class)
	}
	var stacks any
	if a.Stacks.Len() > 0 {
		counts := object{}
		for id, n := range a.Stacks.All() {
			counts[strconv.FormatUint(id, 10)] = number(n)
		}
		stacks = counts
	}
	sites[fmt.Sprintf("%d %s %d", a.Line, class, a.Size)] = object{"17": number(a.Count), "16": stacks}
}

func (v *jsonVisitor) SnapshotEnd() {}

func (v *jsonVisitor) Unknown(_ int64, number uint64) { panic(fmt.Sprint("unknown event ", number)) }

// malformed is the message that announces an event more than it has.
const malformed = "malformed-array-count-blt"

func TestEveryCapturedMessageDecodesToItsJSON(t *testing.T) {
	d := NewDecoder(Limits{})
	for name, want := range captures {
		compared := 0
		for _, m := range openCapture(t, name).Messages {
			if m.Decoded == nil {
				continue
			}
			v := &jsonVisitor{}
			n, err := d.Decode(m.Data, v)
			require.NoError(t, err, m.Name)
			require.Len(t, v.events, n)
			kind, _ := v.header.Dialect.numberOf(EventCollection)
			got := object{
				"0": number(kind), "1": json.Number(fmt.Sprintf("%d.0", v.header.Millis)), "9": number(v.header.Counter), "2": v.events,
			}
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, string(m.Decoded), string(text), "%s %s", name, m.Name)
			compared++
		}
		assert.Equal(t, want.decoded, compared, name)
	}
}

func TestEveryCapturedMessageHasTheEventsThatItsIndexSays(t *testing.T) {
	d := NewDecoder(Limits{})
	for name, want := range captures {
		events := 0
		for _, m := range openCapture(t, name).Messages {
			if m.Events == nil {
				continue
			}
			v := &jsonVisitor{}
			n, err := d.Decode(m.Data, v)
			require.NoError(t, err, m.Name)
			got := map[uint64]int{}
			for _, e := range v.events {
				number, err := strconv.ParseUint(e.(object)["0"].(json.Number).String(), 10, 64)
				require.NoError(t, err)
				got[number]++
			}
			assert.Equal(t, m.Events, got, "%s %s", name, m.Name)
			events += n
		}
		assert.Equal(t, want.events, events, name)
	}
}

func TestEveryCapturedMessageIsWrittenAgainAsItWas(t *testing.T) {
	d, c := NewDecoder(Limits{}), &Collection{}
	for name := range captures {
		for _, m := range openCapture(t, name).Messages {
			if m.Name == malformed {
				continue
			}
			n, err := d.Decode(m.Data, c)
			require.NoError(t, err, m.Name)
			require.Equal(t, n, c.Events())
			requireSameBytes(t, withoutStr8(m.Data), withoutStr8(c.Append(nil)), name+" "+m.Name)
		}
	}
	assert.Zero(t, c.Absent)
}

// withoutStr8 writes a message with the lengths of all texts of 32 to 255 bytes in one
// byte: servers use both encodings for labels.
func withoutStr8(message []byte) []byte {
	var out []byte
	for len(message) > 0 {
		if message[0] == leadStr16 && message[1] == 0 {
			n := int(message[2])
			out, message = append(append(out, leadStr8), message[2:3+n]...), message[3+n:]
			continue
		}
		// The header of a map or an array, or a whole value of another type.
		var rest []byte
		switch msgp.NextType(message) {
		case msgp.MapType:
			_, rest, _ = msgp.ReadMapHeaderBytes(message)
		case msgp.ArrayType:
			_, rest, _ = msgp.ReadArrayHeaderBytes(message)
		default:
			rest, _ = msgp.Skip(message)
		}
		out, message = append(out, message[:len(message)-len(rest)]...), rest
	}
	return out
}

// leadStr8 is the encoding that the old MessagePack doesn't have.
const leadStr8 = 0xd9

// requireSameBytes fails with the place of the first difference: messages are long.
func requireSameBytes(t testing.TB, want, got []byte, what string) {
	t.Helper()
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	if at == len(want) && at == len(got) {
		return
	}
	around := func(b []byte) []byte { return b[max(at-16, 0):min(at+16, len(b))] }
	require.Failf(t, "bytes differ", "%s, byte %d: want … %x …, got … %x …", what, at, around(want), around(got))
}

func TestEveryCapturedHandshakeDecodesToItsJSON(t *testing.T) {
	handshakes := 0
	for name := range captures {
		for _, m := range openCapture(t, name).Replies {
			if m.Decoded == nil {
				assert.Equal(t, Acknowledged, string(m.Data), m.Name)
				_, err := DecodeHandshake(m.Data)
				assert.ErrorContains(t, err, "byte 0: expected a handshake, got")
				continue
			}
			handshakes++
			h, err := DecodeHandshake(m.Data)
			require.NoError(t, err, m.Name)
			assert.Equal(t, m.Data, h.Append(nil), "written again as it was")
			var want struct {
				Type    int            `json:"0"`
				Millis  float64        `json:"1"`
				Payload map[string]any `json:"2"`
			}
			require.NoError(t, json.Unmarshal(m.Decoded, &want))
			assert.Equal(t, map[int]Dialect{8: Released, 7: Documented}[want.Type], h.Dialect)
			assert.EqualValues(t, want.Millis, h.Millis)
			assert.Equal(t, want.Payload, map[string]any{
				"rbkit_server_version": h.ServerVersion, "rbkit_protocol_version": h.ProtocolVersion,
				"process_name": h.ProcessName, "pwd": h.Directory, "pid": float64(h.PID),
				"object_trace_enabled": flagNumber(h.ObjectTrace), "cpu_profiling_enabled": flagNumber(h.CPUProfiling),
				"clock_type": h.Clock, "cpu_profiling_mode": h.Mode,
			})
		}
	}
	assert.Positive(t, handshakes)
}

func flagNumber(set bool) float64 {
	if set {
		return 1
	}
	return 0
}
