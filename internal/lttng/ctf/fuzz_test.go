// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io/fs"
	"math"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// maxFuzzedValues is the maximum number of values of one packet that a fuzz test visits.
const maxFuzzedValues = 100_000

// fuzzSeeds adds metadata and a packet of each capture and of some random traces, and traces of CTF 2.
func fuzzSeeds(f *testing.F, add func(metadata, packet []byte)) {
	for _, c := range lttngdata.Captures {
		files := lttngdata.OpenCapture(f, c.Name)
		dir := lttngdata.OpenTrace(f, files)
		text, err := fs.ReadFile(files, path.Join(dir.Name, "metadata"))
		if err != nil {
			f.Fatal(err)
		}
		for _, packets := range lttngdata.Packets(f, dir) {
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
			t.Fatal("expected an error with a text")
		}
		if wholeErr == nil && (whole.EventClasses() != pieces.EventClasses() || whole.Incomplete() != pieces.Incomplete()) {
			t.Fatalf("expected the same from metadata in one piece and cut at %d, got %d and %d classes, %d and %d bytes left",
				cut, whole.EventClasses(), pieces.EventClasses(), whole.Incomplete(), pieces.Incomplete())
		}
	})
}

// FuzzPacket reads any packet with any metadata, twice with one reader. Each event begins at the end of the previous
// one and has at least one bit, so offsets rise up to the end of the content. No value is larger than its field. No
// text, array or number of values is larger than the packet allows. Three ways of reading have the same result: the
// normal one, with headers read by their programs, and with each event dropped and read again.
func FuzzPacket(f *testing.F) {
	fuzzSeeds(f, func(metadata, packet []byte) { f.Add(metadata, packet[:min(len(packet), 2000)]) })
	f.Fuzz(func(t *testing.T, text, packet []byte) {
		trace, slow := ctf.NewTrace(), ctf.NewTrace()
		if trace.Append(text) != nil {
			return
		}
		if err := slow.Append(text); err != nil {
			t.Fatalf("expected the same metadata to be accepted twice, got %v", err)
		}
		slow.ReadHeadersSlowly()
		asItIs := readTwice(t, trace, packet, func(*ctf.Reader) {})
		if other := readTwice(t, slow, packet, func(*ctf.Reader) {}); other != asItIs {
			t.Fatalf("expected the same with headers read by their programs:\n%s\ngot\n%s", asItIs, other)
		}
		if other := readTwice(t, trace, packet, (*ctf.Reader).Reread); other != asItIs {
			t.Fatalf("expected the same of events that are read again:\n%s\ngot\n%s", asItIs, other)
		}
	})
}

// readTwice reads a packet twice with one reader, checks the invariants of events, and returns all values of the
// packet as text. It calls afterNext for each event.
func readTwice(t *testing.T, trace *ctf.Trace, packet []byte, afterNext func(*ctf.Reader)) string {
	r := ctf.NewReader(trace)
	var said strings.Builder
	size, err := r.Size(packet)
	fmt.Fprintln(&said, size, err)
	v := visitor{t: t, left: maxFuzzedValues, packet: len(packet), hash: fnv.New64a()}
	for range 2 {
		if err := r.Begin(packet); err != nil {
			fmt.Fprintln(&said, err)
			return said.String()
		}
		p := &r.Packet
		if p.Content > uint64(len(packet))*8 || p.Content > p.Size {
			t.Fatalf("expected a content of at most %d bytes and the packet's %d bits, got %d bits", len(packet), p.Size, p.Content)
		}
		if size > 0 && (p.Size+7)/8 != uint64(size) {
			t.Fatalf("expected the size of %d bytes that Size returned, got %d bits", size, p.Size)
		}
		v.visit(&p.Values, p.Class.PacketHeader)
		v.visit(&p.Values, p.Class.PacketContext)
		fmt.Fprintln(&said, p.Class.ID, p.Content, p.Size, p.Begin, p.End, p.Sequence, p.Discarded, p.Instance, r.Losses, v.hash.Sum64())
		offset := r.Offset()
		for r.Next() {
			from := offset
			if offset = r.Offset(); offset <= from || offset > p.Content {
				t.Fatalf("expected an event that ends after bit %d and at %d or before, got one that ends at %d", from, p.Content, offset)
			}
			afterNext(r)
			if r.Offset() != offset {
				t.Fatalf("expected to be at bit %d after reading an event again, got %d", offset, r.Offset())
			}
			for scope := metadata.EventHeader; scope <= metadata.EventFields; scope++ {
				v.visit(&r.Event.Values, r.Event.Class.Scope(scope))
			}
			fmt.Fprintln(&said, r.Event.Class.Name, offset, r.Event.Clock, r.Event.UnixNano(), v.hash.Sum64())
		}
		if r.Err() == nil && offset != p.Content {
			t.Fatalf("expected events up to bit %d, the end of the content, got them up to %d", p.Content, offset)
		}
		if r.Err() != nil {
			// The position of the error in a header, and the clock after it, depend on the way of reading.
			fmt.Fprintln(&said, "does not fit")
			return said.String()
		}
		fmt.Fprintln(&said, r.Clock())
	}
	return said.String()
}

// visitor visits up to left values and hashes them.
type visitor struct {
	t      *testing.T
	left   int
	packet int
	hash   hash.Hash64
}

// visit visits a field and all values below it.
func (n *visitor) visit(v *ctf.Values, f *ctf.Field) {
	if n.left--; n.left < 0 {
		return
	}
	switch f.Kind {
	case ctf.Uint:
		n.number(v.Uint(f))
		if i, ok := f.Type.(*metadata.Integer); ok && !i.Variable && i.Size < 64 && v.Uint(f)>>i.Size != 0 {
			n.t.Fatalf("field %s: expected a number of %d bits, got %#x", f.Path(), i.Size, v.Uint(f))
		}
	case ctf.Int:
		n.number(uint64(v.Int(f)))
		if i, ok := f.Type.(*metadata.Integer); ok && !i.Variable && i.Size < 64 && v.Int(f)>>(i.Size-1) != 0 && v.Int(f)>>(i.Size-1) != -1 {
			n.t.Fatalf("field %s: expected a number of %d bits, got %d", f.Path(), i.Size, v.Int(f))
		}
	case ctf.Float:
		n.number(math.Float64bits(v.Float(f)))
	case ctf.Text:
		n.bytes(f, v.Bytes(f))
		if text := v.Text(f); len(text) > len(v.Bytes(f)) {
			n.t.Fatalf("field %s: expected a text of at most %d bytes, got %d", f.Path(), len(v.Bytes(f)), len(text))
		}
		if wide := f.Encoding().Unit() > 1; wide && !utf8.Valid(v.AppendText(nil, f)) {
			n.t.Fatalf("field %s: expected UTF-8, got %q", f.Path(), v.AppendText(nil, f))
		}
	case ctf.Bytes:
		n.bytes(f, v.Bytes(f))
	case ctf.Struct:
		for _, m := range f.Members {
			n.visit(v, m)
		}
	case ctf.Variant, ctf.Optional:
		if option := v.Option(f); option != nil {
			n.visit(v, option)
		}
	case ctf.Array:
		n.number(uint64(v.Len(f)))
		if most := min(ctf.MaxElements, ctf.FreeElements+8*n.packet); v.Len(f) > most {
			n.t.Fatalf("field %s: expected at most %d elements of a packet of %d bytes, got %d", f.Path(), most, n.packet, v.Len(f))
		}
		for i := 0; i < v.Len(f) && n.left > 0; i++ {
			element := v.Element(f, i)
			n.visit(&element, f.Members[0])
		}
	}
}

func (n *visitor) number(value uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], value)
	n.hash.Write(b[:])
}

// bytes visits bytes. All of them are part of the packet.
func (n *visitor) bytes(f *ctf.Field, b []byte) {
	if len(b) > n.packet {
		n.t.Fatalf("field %s: expected at most the packet's %d bytes, got %d", f.Path(), n.packet, len(b))
	}
	n.number(uint64(len(b)))
	n.hash.Write(b)
}
