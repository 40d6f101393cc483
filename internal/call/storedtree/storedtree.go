// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package storedtree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Version is the version of the format. Trees of all versions from the first one on can be read.
const (
	Version      = 2
	firstVersion = 1
)

const (
	magic         = "cbct"
	checksumBytes = 4
	// maxBody bounds an uncompressed body, in bytes.
	maxBody = 512 << 20
	// maxWindowMemory bounds the memory of decompression, in bytes.
	maxWindowMemory = 8 << 20
	markBits        = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Entry is a stored tree.
type Entry struct {
	Window Window
	// Part is the number of the entry among all that a storage ever had. Several can be parts of one window.
	Part     uint64
	Snapshot calltree.Snapshot
}

// Header has everything of an entry except the paths, remarks and gaps.
type Header struct {
	Window   Window
	Part     uint64
	Service  string
	Kind     calltree.Kind
	From, To time.Time
	Paths    int
}

// VersionError is the error for an entry of another version of the format.
type VersionError struct{ Got, Newest byte }

func (e VersionError) Error() string {
	return fmt.Sprintf("another version of the collector stored it: expected a format up to %d, got %d", e.Newest, e.Got)
}

var (
	errMagic    = errors.New("expected the begin of a stored call tree, got other data")
	errTooShort = errors.New("expected more data at the end")
)

// Encoder encodes trees. One goroutine can use it.
type Encoder struct{ zstd *zstd.Encoder }

// NewEncoder returns an encoder.
func NewEncoder() *Encoder {
	// These options do not fail.
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	return &Encoder{encoder}
}

// Encode returns the stored form of a tree.
func (c *Encoder) Encode(e *Entry) []byte {
	s := &e.Snapshot
	var h writer
	h.number(uint64(e.Window.Length))
	h.signed(e.Window.Start)
	h.number(e.Part)
	for _, text := range [...]string{s.Service, s.Kind.Type, s.Kind.Unit} {
		h.text(text)
	}
	h.time(s.From)
	h.time(s.To)
	h.number(uint64(len(s.Nodes)))

	out := writer{append([]byte(magic), Version)}
	out.text(string(h.bytes))
	return Seal(c.zstd.EncodeAll(body(s), out.bytes))
}

// Seal appends the checksum of data.
func Seal(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// Unseal returns data without its checksum, or an error if it is not whole.
func Unseal(sealed []byte) ([]byte, error) {
	if len(sealed) < checksumBytes {
		return nil, errTooShort
	}
	data := sealed[:len(sealed)-checksumBytes]
	want, got := binary.LittleEndian.Uint32(sealed[len(data):]), crc32.Checksum(data, castagnoli)
	if got != want {
		return nil, fmt.Errorf("it is torn or damaged: expected the checksum %08x, got %08x", want, got)
	}
	return data, nil
}

type function struct {
	name, file string
	line       int64
}

// body is the uncompressed body.
func body(s *calltree.Snapshot) []byte {
	var w writer
	w.number(uint64(len(s.Remarks)))
	for _, remark := range s.Remarks {
		w.text(remark)
	}
	w.number(s.Lost.Forgotten)
	w.number(s.Lost.GivenUp)
	w.number(s.Lost.FoldedPaths)
	w.number(s.Lost.LeftOut.Calls)
	w.number(s.Lost.LeftOut.Errors)
	w.signed(s.Lost.LeftOut.Time)
	w.signed(s.Missing.Classes)
	w.text(s.Missing.First)

	// 1. The functions in the order of their first paths.
	numbers, all := map[function]uint64{}, []function(nil)
	of := make([]uint64, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Mark > calltree.Truncated {
			continue
		}
		f := function{n.Function, n.File, n.Line}
		number, ok := numbers[f]
		if !ok {
			number = uint64(len(all))
			numbers[f] = number
			all = append(all, f)
		}
		of[i] = number
	}
	w.number(uint64(len(all)))
	for _, f := range all {
		w.text(f.name)
		w.text(f.file)
		w.signed(f.line)
	}

	// 2. The columns.
	depths, before := make([]int32, len(s.Nodes)), int32(0)
	for i := range s.Nodes {
		depths[i] = 1
		if parent := s.Nodes[i].Parent; parent >= 0 {
			depths[i] = depths[parent] + 1
		}
		w.number(uint64(before + 1 - depths[i]))
		before = depths[i]
	}
	for i := range s.Nodes {
		w.number(of[i]<<markBits | uint64(s.Nodes[i].Mark))
	}
	for i := range s.Nodes {
		w.number(s.Nodes[i].Calls)
	}
	for i := range s.Nodes {
		w.number(s.Nodes[i].Errors)
	}
	for i := range s.Nodes {
		w.signed(s.Nodes[i].Total)
	}
	for i := range s.Nodes {
		w.signed(s.Nodes[i].Total - s.Nodes[i].Self)
	}
	return w.bytes
}

// CheckVersion returns an error if a stored tree is of another version ([VersionError]), or none at all. It reads nothing else of it.
func CheckVersion(stored []byte) error {
	if len(stored) <= len(magic) || string(stored[:len(magic)]) != magic {
		return errMagic
	}
	if version := stored[len(magic)]; version < firstVersion || version > Version {
		return VersionError{version, Version}
	}
	return nil
}

// DecodeHeader returns the header of a stored tree, whose checksum it checks.
func DecodeHeader(stored []byte) (Header, error) {
	h, _, err := decodeHeader(stored)
	return h, err
}

func decodeHeader(stored []byte) (h Header, compressed []byte, err error) {
	if err := CheckVersion(stored); err != nil {
		return h, nil, err
	}
	data, err := Unseal(stored)
	if err != nil {
		return h, nil, err
	}
	all := reader{rest: data[min(len(data), len(magic)+1):]}
	r := reader{rest: []byte(all.text())}
	h.Window = Window{Length: Length(r.below(uint64(lengths), "length of the window")), Start: r.signed()}
	h.Part = r.number()
	h.Service, h.Kind.Type, h.Kind.Unit = r.text(), r.text(), r.text()
	h.From, h.To = r.time(), r.time()
	h.Paths = int(r.below(math.MaxInt32, "number of paths"))
	r.end()
	return h, all.rest, errors.Join(all.err, r.err)
}

// Decode returns a stored tree.
func Decode(stored []byte) (*Entry, error) {
	h, compressed, err := decodeHeader(stored)
	if err != nil {
		return nil, err
	}
	raw, err := decompress(compressed)
	if err != nil {
		return nil, err
	}
	e := &Entry{Window: h.Window, Part: h.Part, Snapshot: calltree.Snapshot{Service: h.Service, Kind: h.Kind, From: h.From, To: h.To}}
	r := reader{rest: raw}
	r.body(&e.Snapshot, h.Paths, stored[len(magic)])
	r.end()
	if r.err != nil {
		return nil, r.err
	}
	return e, nil
}

// decompress returns the body. It allocates in proportion to it.
func decompress(compressed []byte) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(compressed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindowMemory))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	raw, err := io.ReadAll(io.LimitReader(d, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompress: %w", err)
	case len(raw) > maxBody:
		return nil, fmt.Errorf("expected a body of at most %d bytes, got more", maxBody)
	}
	return raw, nil
}

// body reads a body of a version, with so many paths.
func (r *reader) body(s *calltree.Snapshot, paths int, version byte) {
	for range r.count(1, "remarks") {
		s.Remarks = append(s.Remarks, r.text())
	}
	s.Lost = calltree.Lost{Forgotten: r.number(), GivenUp: r.number(), FoldedPaths: r.number()}
	if version > firstVersion {
		s.Lost.LeftOut = calltree.LeftOut{Calls: r.number(), Errors: r.number(), Time: r.signed()}
	}
	s.Missing = calltree.Missing{Classes: r.signed(), First: r.text()}

	// 1. The functions.
	const leastFunction, leastPath = 3, 6
	functions := make([]function, r.count(leastFunction, "functions"))
	for i := range functions {
		functions[i] = function{r.text(), r.text(), r.signed()}
	}

	// 2. The columns.
	if r.err == nil && paths > len(r.rest)/leastPath {
		r.fail("expected room for %d paths, got %d bytes", paths, len(r.rest))
	}
	if r.err != nil || paths == 0 {
		return
	}
	s.Nodes = make([]calltree.Node, paths)
	// way leads to the path before.
	way := make([]int32, 0, 64)
	for i := range s.Nodes {
		up := int(r.below(uint64(len(way))+1, "levels above the path before"))
		if way = way[:len(way)-up]; len(way) == calltree.MaxDepth {
			r.fail("expected at most %d levels", calltree.MaxDepth)
			return
		}
		s.Nodes[i].Parent = -1
		if len(way) > 0 {
			s.Nodes[i].Parent = way[len(way)-1]
		}
		way = append(way, int32(i))
	}
	for i := range s.Nodes {
		n, label := &s.Nodes[i], r.number()
		n.Mark = calltree.Mark(label & (1<<markBits - 1))
		switch number := label >> markBits; {
		case n.Mark > calltree.Deep:
			r.fail("expected a mark up to %d, got %d", calltree.Deep, n.Mark)
		case n.Mark > calltree.Truncated:
			n.Function = n.Mark.String()
		case number >= uint64(len(functions)):
			r.fail("expected a function below %d, got %d", len(functions), number)
		default:
			f := &functions[number]
			n.Function, n.File, n.Line = f.name, f.file, f.line
		}
	}
	for i := range s.Nodes {
		s.Nodes[i].Calls = r.number()
	}
	for i := range s.Nodes {
		s.Nodes[i].Errors = r.number()
	}
	for i := range s.Nodes {
		s.Nodes[i].Total = r.signed()
	}
	for i := range s.Nodes {
		s.Nodes[i].Self = s.Nodes[i].Total - r.signed()
	}
}

// writer appends varints and texts.
type writer struct{ bytes []byte }

func (w *writer) number(n uint64) { w.bytes = binary.AppendUvarint(w.bytes, n) }
func (w *writer) signed(n int64)  { w.bytes = binary.AppendVarint(w.bytes, n) }
func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.bytes = append(w.bytes, s...)
}
func (w *writer) time(t time.Time) {
	w.signed(t.Unix())
	w.number(uint64(t.Nanosecond()))
}

// reader reads what a writer wrote, up to the first error.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, values ...any) {
	if r.err == nil {
		r.err, r.rest = fmt.Errorf(format, values...), nil
	}
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail("expected a number, got the end of the data or more than 64 bits")
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.fail("expected a number, got the end of the data or more than 64 bits")
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// below is a number below a bound.
func (r *reader) below(bound uint64, what string) uint64 {
	n := r.number()
	if n >= bound && r.err == nil {
		r.fail("%s: expected less than %d, got %d", what, bound, n)
	}
	if r.err != nil {
		return 0
	}
	return n
}

// count is the number of things that take at least so many bytes each.
func (r *reader) count(least int, what string) int {
	return int(r.below(uint64(len(r.rest)/least)+1, "number of "+what))
}

func (r *reader) text() string {
	n := r.count(1, "bytes")
	if r.err != nil {
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

func (r *reader) time() time.Time {
	seconds, nanoseconds := r.signed(), r.below(uint64(time.Second), "nanoseconds")
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}

func (r *reader) end() {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("expected the end, got %d more bytes", len(r.rest))
	}
}
