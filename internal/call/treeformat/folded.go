// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// foldedReplacer replaces the separators of frames and values in names. Programs that read folded
// stacks use the last word of a line as the value. If the last two are numbers, they compare them.
var foldedReplacer = strings.NewReplacer(";", ":", " ", "_")

// WriteFolded writes the snapshot as folded stacks, for flamegraph.pl and others. It writes a line
// for each path with self time: the functions from the top, with semicolons between them, and the
// self time (or the kind's value). Semicolons in names become colons, and spaces underscores. As in
// [Profile], every path is a stack of its own.
func WriteFolded(w io.Writer, s calltree.Snapshot) error {
	out := bufio.NewWriter(w)
	var (
		names  = map[string]string{} // the names in the file, by function
		depths = depthsOf(s.Nodes)
		line   []byte // the stack of the current node
		ends   []int  // of its frames in line
	)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		ends = ends[:depths[i]-1]
		line = line[:0]
		if len(ends) > 0 {
			line = append(line[:ends[len(ends)-1]], ';')
		}
		line = append(line, foldedName(names, n)...)
		ends = append(ends, len(line))
		if n.Self == 0 {
			continue
		}
		out.Write(line) // Flush returns the error
		out.WriteByte(' ')
		out.Write(strconv.AppendInt(out.AvailableBuffer(), n.Self, 10))
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return out.Flush()
}

func foldedName(names map[string]string, n *calltree.Node) string {
	if n.Mark == calltree.Truncated {
		return foldedReplacer.Replace(nameOf(n))
	}
	name, ok := names[n.Function]
	if !ok {
		name = foldedReplacer.Replace(nameOf(n))
		names[n.Function] = name
	}
	return name
}
