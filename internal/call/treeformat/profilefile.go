// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"compress/gzip"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Numbers of fields (profile.proto of pprof, messages Profile and Sample).
const (
	fieldSample     = 2
	fieldLocationID = 1
	fieldValue      = 2
)

// WriteProfile writes the file of [Profile], which go tool pprof and others read, with the [Notes]
// as comments.
//
// Parts of a protobuf message can be concatenated (Protocol Buffers, "Last One Wins"). So
// WriteProfile writes the tables first, and then each sample when it is built. Building all samples
// first takes most of the time if there are many paths.
func WriteProfile(w io.Writer, s calltree.Snapshot) error {
	b := newProfileBuilder(s)
	b.p.Comments = Notes(s)
	locations := make([]uint64, len(s.Nodes)) // the ID of its location, by node
	for i := range s.Nodes {
		locations[i] = b.location(&s.Nodes[i]).ID
	}
	// The best compression takes as long as everything else, for a file that is a tenth smaller.
	compressed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := b.p.WriteUncompressed(compressed); err != nil {
		return err
	}
	if err := b.writeSamples(compressed, s.Nodes, locations); err != nil {
		return err
	}
	return compressed.Close()
}

// writeSamples writes the samples of addSamples.
func (b *profileBuilder) writeSamples(w io.Writer, nodes []calltree.Node, locations []uint64) error {
	var (
		depths                       = depthsOf(nodes)
		stack                        = make([]uint64, 0, 64) // of the current node, from the top
		ids, values, sample, message []byte
	)
	for i := range nodes {
		n := &nodes[i]
		stack = append(stack[:depths[i]-1], locations[i])
		if !hasValue(n) {
			continue
		}
		ids, values, sample, message = ids[:0], values[:0], sample[:0], message[:0]
		for j := len(stack) - 1; j >= 0; j-- { // pprof expects callees first
			ids = protowire.AppendVarint(ids, stack[j])
		}
		for _, of := range b.values {
			values = protowire.AppendVarint(values, uint64(of(n)))
		}
		sample = protowire.AppendTag(sample, fieldLocationID, protowire.BytesType)
		sample = protowire.AppendBytes(sample, ids)
		sample = protowire.AppendTag(sample, fieldValue, protowire.BytesType)
		sample = protowire.AppendBytes(sample, values)
		message = protowire.AppendTag(message, fieldSample, protowire.BytesType)
		message = protowire.AppendBytes(message, sample)
		if _, err := w.Write(message); err != nil {
			return err
		}
	}
	return nil
}
