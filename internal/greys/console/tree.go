// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// treeBlock reads trees of calls, each with a blank line below:
//
//	`---+Tracing for : thread_name="main" thread_id=0x1;is_daemon=false;priority=5;
//	    `---+[11,11ms]demo.Shop:checkout()
//	        +---[3,3ms]demo.Shop:price(@10)
//	        `---[11,8ms]demo.Pay:charge(@10)[throw java.io.IOException]
//
// The server keeps one tree for each thread. Where a method that is traced calls one that is
// traced too, the inner one's tree takes the place of the outer one's, is told when the inner
// call ends, and again when the outer one does, with what the outer one called in between
// beside the inner call. Such a repetition is left out. Where nothing was called in between it
// can't be told from another call.
//
// The first number is a call's end, the second how long it took, in milliseconds since the
// tree's begin. A call "throw" is no call, but says what its caller threw. A call that did not
// end before the tree was written has an end far before its begin.
type treeBlock struct {
	*output
	definite
	isOpen bool
	title  title
	// depth is that of the last line, 0: the title's; tops is how many calls stand right below
	// the title.
	depth, tops int
	// path are the indexes of the calls above the next one, by their depth.
	path  []int32
	reply greys.Tree
}

const (
	stepLast, stepNext     = "`---", "+---"
	stepBlank, stepThrough = "    ", "|   "
	stepBytes              = 4
	traceTitle             = "Tracing for : "
	pathTraceTitle         = "pTracing for : "
	throwClass             = "throw"
	throwSuffix            = "[throw "
	recordSuffix           = "; index="
	titleGoesOn            = "    |"
)

func (b *treeBlock) open() bool { return b.isOpen }

func (b *treeBlock) end() error {
	if b.isOpen {
		return wrong("the rest of a tree of calls, and a blank line", nil)
	}
	return nil
}

func (b *treeBlock) line(text []byte) error {
	switch {
	case !b.isOpen:
		return b.begin(text)
	case !b.title.complete:
		rest, ok := bytes.CutPrefix(text, []byte(titleGoesOn))
		if !ok {
			return wrong("the rest of a tree's title, which says a thread", text)
		}
		return b.title.line(rest, &b.names, &b.reply.Thread)
	case len(text) == 0:
		b.isOpen = false
		b.complete()
		return nil
	}
	return b.node(text)
}

// begin reads the title.
func (b *treeBlock) begin(text []byte) error {
	title, ok := bytes.CutPrefix(text, []byte(stepLast))
	title = bytes.TrimPrefix(title, []byte("+"))
	thread, isTrace := bytes.CutPrefix(title, []byte(traceTitle))
	if !isTrace {
		thread, isTrace = bytes.CutPrefix(title, []byte(pathTraceTitle))
	}
	if !ok || !isTrace {
		return wrong("the title of a tree of calls: `---+Tracing for : ...", text)
	}
	b.isOpen, b.depth, b.tops = true, 0, 0
	b.reply.Nodes, b.path, b.reply.Unended = reused(b.reply.Nodes), b.path[:0], false
	b.title.reset()
	return b.title.line(thread, &b.names, &b.reply.Thread)
}

// complete gives the tree, if there is one.
func (b *treeBlock) complete() {
	switch {
	case b.tops == 1:
		b.output.reply(&b.reply)
	case b.tops > 1:
		b.repeated++
	}
}

const expectedNode = "a call of a tree: [end,durationms]class:method(@line)"

// node reads a call.
func (b *treeBlock) node(text []byte) error {
	depth, rest := nodeDepth(text)
	if depth == 0 || depth > b.depth+1 {
		return wrong(fmt.Sprintf("a call of a tree, at depth 1 to %d", b.depth+1), text)
	}
	start, end, times, ok := nodeTimes(rest)
	if !ok {
		return wrong(expectedNode, text)
	}
	b.reply.Unended = b.reply.Unended || hasNotEnded(rest)
	rest = times
	call, ok := parseCall(rest)
	if !ok {
		return wrong(expectedNode, text)
	}
	b.path = b.path[:depth-1]
	if string(call.class) == throwClass && depth > 1 {
		b.depth = depth - 1 // it has no callees
		b.reply.Nodes[b.path[depth-2]].Throws = b.names.of(call.method)
		return nil
	}
	b.depth = depth
	if depth == 1 {
		b.tops++
	}
	b.path = append(b.path, int32(len(b.reply.Nodes)))
	b.reply.Nodes = append(b.reply.Nodes, greys.Node{
		Depth: int32(depth - 1), Start: start, End: end,
		Class: b.names.of(call.class), Method: b.names.of(call.method), Line: call.line, Throws: b.names.of(call.throws),
	})
	return nil
}

// nodeDepth is how deep a call stands, 0: it is none, and what stands behind the lines of the
// tree.
func nodeDepth(text []byte) (depth int, rest []byte) {
	for ; len(text) >= stepBytes; text = text[stepBytes:] {
		switch string(text[:stepBytes]) {
		case stepBlank, stepThrough:
			depth++
		case stepLast, stepNext:
			return depth, bytes.TrimPrefix(text[stepBytes:], []byte("+"))
		default:
			return 0, nil
		}
	}
	return 0, nil
}

// hasNotEnded reports whether [end,durationms] is of a call that has not: its end is 0, and all is
// counted from 1970.
func hasNotEnded(text []byte) bool {
	endText, _, _ := bytes.Cut(text[1:], []byte(","))
	endMs, _ := integer(endText)
	return endMs < -maxMilliseconds/1e6
}

// nodeTimes reads [end,durationms].
func nodeTimes(text []byte) (start, end time.Duration, rest []byte, ok bool) {
	text, ok = bytes.CutPrefix(text, []byte("["))
	endText, text, hasComma := bytes.Cut(text, []byte(","))
	durationText, rest, hasEnd := bytes.Cut(text, []byte("ms]"))
	endMs, isEnd := integer(endText)
	durationMs, isDuration := integer(durationText)
	if !ok || !hasComma || !hasEnd || !isEnd || !isDuration {
		return 0, 0, nil, false
	}
	startMs := max(0, endMs-durationMs)
	endMs = max(startMs, endMs)
	if endMs > maxMilliseconds {
		return 0, 0, nil, false
	}
	return time.Duration(startMs) * time.Millisecond, time.Duration(endMs) * time.Millisecond, rest, true
}

// call is what a line of a tree says of one.
type call struct {
	class, method, throws []byte
	line                  int32
}

// parseCall reads what stands behind the times of a call:
//
//	demo.Shop:price(@10)   demo.Shop:checkout()   throw:java.io.IOException()
//	demo.Pay:charge(@10)[throw java.io.IOException]   demo.Shop:checkout(); index=1001;
func parseCall(text []byte) (c call, ok bool) {
	if i := bytes.LastIndex(text, []byte(recordSuffix)); i >= 0 && bytes.HasSuffix(text, []byte(";")) {
		text = text[:i]
	}
	if i := bytes.LastIndex(text, []byte(throwSuffix)); i >= 0 && bytes.HasSuffix(text, []byte("]")) {
		text, c.throws = text[:i], text[i+len(throwSuffix):len(text)-1]
	}
	colon := bytes.IndexByte(text, ':')
	if colon < 0 {
		return call{}, false
	}
	c.class, c.method = text[:colon], text[colon+1:]
	paren := bytes.LastIndexByte(c.method, '(')
	switch {
	case paren < 0 && string(c.class) == throwClass:
		return c, true
	case paren < 0 || !bytes.HasSuffix(c.method, []byte(")")):
		return call{}, false
	}
	if line := c.method[paren+1 : len(c.method)-1]; len(line) > 0 {
		n, isLine := int64(0), line[0] == '@'
		if isLine {
			n, isLine = count(line[1:])
		}
		if !isLine || n > maxLine {
			return call{}, false
		}
		c.line = int32(n)
	}
	c.method = c.method[:paren]
	return c, true
}

// maxLine is the last line that a class file can say.
const maxLine = 1<<16 - 1

// AppendTree adds a tree of calls. Where the first call threw, that is a call "throw" below
// it; of others it stands behind them.
func AppendTree(b []byte, t *greys.Tree) []byte {
	b = append(b, stepLast+"+"+traceTitle...)
	title := appendThread(nil, &t.Thread)
	b = append(append(b, bytes.ReplaceAll(title, []byte("\n"), []byte("\n"+titleGoesOn))...), '\n')
	prefix := []byte(stepBlank)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		last := isLastCallee(t.Nodes, i)
		isCaller := i+1 < len(t.Nodes) && t.Nodes[i+1].Depth > n.Depth || i == 0 && n.Throws != ""
		if n.Depth == 1 && t.Nodes[0].Throws != "" {
			last = false
		}
		prefix = prefix[:(n.Depth+1)*stepBytes]
		b = appendNode(append(b, prefix...), n, last, isCaller, i == 0)
		if last {
			prefix = append(prefix, stepBlank...)
		} else {
			prefix = append(prefix, stepThrough...)
		}
	}
	if first := &t.Nodes[0]; first.Throws != "" {
		b = fmt.Appendf(b, "%s%s%s[%d,0ms]%s:%s()\n", stepBlank, stepBlank, stepLast, first.End.Milliseconds(), throwClass, first.Throws)
	}
	return append(b, '\n')
}

// isLastCallee reports whether a call's caller calls nothing after it.
func isLastCallee(nodes []greys.Node, i int) bool {
	for _, n := range nodes[i+1:] {
		if n.Depth <= nodes[i].Depth {
			return n.Depth < nodes[i].Depth
		}
	}
	return true
}

func appendNode(b []byte, n *greys.Node, last, isCaller, first bool) []byte {
	if last {
		b = append(b, stepLast...)
	} else {
		b = append(b, stepNext...)
	}
	if isCaller {
		b = append(b, '+')
	}
	b = fmt.Appendf(b, "[%d,%dms]%s:%s(", n.End.Milliseconds(), (n.End - n.Start).Milliseconds(), n.Class, n.Method)
	if n.Line != 0 {
		b = strconv.AppendInt(append(b, '@'), int64(n.Line), 10)
	}
	if b = append(b, ')'); n.Throws != "" && !first {
		b = append(append(append(b, throwSuffix...), n.Throws...), ']')
	}
	return append(b, '\n')
}
