// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/ctf"
	"github.com/callbraid/callbraid/internal/ctf/metadata"
)

// maxFuzzedValues is how many values of one packet a fuzz test looks at.
const maxFuzzedValues = 100_000

// fuzzSeeds are metadata and a packet of each capture and of some random traces, and
// traces of CTF 2.
func fuzzSeeds(f *testing.F, add func(metadata, packet []byte)) {
	for _, c := range captures {
		files := openCapture(f, c.name)
		dir := openTrace(f, files)
		text, err := fs.ReadFile(files, path.Join(dir.Name, "metadata"))
		if err != nil {
			f.Fatal(err)
		}
		for _, packets := range packetsOf(f, dir) {
			if len(packets) > 0 {
				add(text, packets[0])
			}
		}
	}
	for seed := range uint64(20) {
		t := newRandomTrace(seed, false)
		add([]byte(t.metadata), t.packet)
	}
	for _, c := range ctf2Cases {
		packet := bitWriter{}
		c.packet(&packet)
		add([]byte(c.metadata()), packet.data)
	}
}

// FuzzMetadata reads metadata of both languages, whole and in two pieces.
func FuzzMetadata(f *testing.F) {
	fuzzSeeds(f, func(metadata, _ []byte) { f.Add(metadata, len(metadata)/2) })
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		whole, pieces := ctf.NewTrace(), ctf.NewTrace()
		wholeErr := whole.Append(text)
		cut = min(max(0, cut), len(text))
		piecesErr := pieces.Append(text[:cut])
		if piecesErr == nil {
			piecesErr = pieces.Append(text[cut:])
		}
		if (wholeErr == nil) != (piecesErr == nil) {
			t.Fatalf("expected the same from metadata in one piece and cut at %d, got %v and %v", cut, wholeErr, piecesErr)
		}
		if wholeErr != nil && strings.TrimSpace(wholeErr.Error()) == "" {
			t.Fatal("expected an error that says something")
		}
		if wholeErr == nil && (whole.EventClasses() != pieces.EventClasses() || whole.Incomplete() != pieces.Incomplete()) {
			t.Fatalf("expected the same from metadata in one piece and cut at %d, got %d and %d classes, %d and %d bytes left",
				cut, whole.EventClasses(), pieces.EventClasses(), whole.Incomplete(), pieces.Incomplete())
		}
	})
}

// FuzzPacket reads any packet with any metadata, and looks at every value.
func FuzzPacket(f *testing.F) {
	fuzzSeeds(f, func(metadata, packet []byte) { f.Add(metadata, packet[:min(len(packet), 2000)]) })
	f.Fuzz(func(t *testing.T, text, packet []byte) {
		trace := ctf.NewTrace()
		if trace.Append(text) != nil {
			return
		}
		r := ctf.NewReader(trace)
		_, _ = r.Size(packet)
		v := visitor(maxFuzzedValues)
		for range 2 {
			if r.Begin(packet) != nil {
				return
			}
			v.visit(&r.Packet.Values, r.Packet.Class.PacketHeader)
			v.visit(&r.Packet.Values, r.Packet.Class.PacketContext)
			for r.Next() {
				for scope := metadata.EventHeader; scope <= metadata.EventFields; scope++ {
					v.visit(&r.Event.Values, r.Event.Class.Scope(scope))
				}
				_ = r.Event.UnixNano()
			}
		}
	})
}

// visitor looks at values, and counts down.
type visitor int

// visit looks at every value from a field on down.
func (n *visitor) visit(v *ctf.Values, f *ctf.Field) {
	if *n--; *n < 0 {
		return
	}
	switch f.Kind {
	case ctf.Uint:
		_ = v.Uint(f)
	case ctf.Int:
		_ = v.Int(f)
	case ctf.Float:
		_ = v.Float(f)
	case ctf.Text:
		_ = v.AppendText(nil, f)
	case ctf.Bytes:
		_ = v.Bytes(f)
	case ctf.Struct:
		for _, m := range f.Members {
			n.visit(v, m)
		}
	case ctf.Variant, ctf.Optional:
		if option := v.Option(f); option != nil {
			n.visit(v, option)
		}
	case ctf.Array:
		for i := 0; i < v.Len(f) && *n > 0; i++ {
			element := v.Element(f, i)
			n.visit(&element, f.Members[0])
		}
	}
}
