// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// treeBlock reads trees of calls, each with a blank line below:
//
//	`---+Tracing for : thread_name="main" thread_id=0x1;is_daemon=false;priority=5;
//	    `---+[11,11ms]demo.Shop:checkout()
//	        +---[3,3ms]demo.Shop:price(@10)
//	        `---[11,8ms]demo.Pay:charge(@10)[throw java.io.IOException]
//
// The server keeps one tree for each thread. If a traced method calls another traced method, the inner tree replaces
// the outer tree. The server sends it when the inner call ends, and again when the outer call ends, with the outer
// call's later callees beside the inner call. The block ignores such a repetition. If there are no later callees, a
// repetition looks like another call.
//
// The first number is the end of a call, the second its duration, in milliseconds since the begin of the tree. A line
// "throw" is no call: it names the type that its caller threw. A call that had not ended when the tree was written has
// an end far before its begin.
type treeBlock struct {
	*output
	definite
	isOpen bool
	title  title
	// depth is the depth of the last line; 0 is the title. tops is the number of calls directly below the title.
	depth, tops int
	// path has the index of the last call at each depth: the callers of the next call.
	path  []int32
	reply javamethods.Tree
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
		return unexpected("the rest of a tree of calls, and a blank line", nil)
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
			return unexpected("the rest of a tree's title, with its thread", text)
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
		return unexpected("the title of a tree of calls: `---+Tracing for : ...", text)
	}
	b.isOpen, b.depth, b.tops = true, 0, 0
	b.reply.Nodes, b.path, b.reply.Unended = reused(b.reply.Nodes), b.path[:0], false
	b.title.reset()
	return b.title.line(thread, &b.names, &b.reply.Thread)
}

// complete delivers the tree if it is one, and counts a repetition.
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
		return unexpected(fmt.Sprintf("a call of a tree, at depth 1 to %d", b.depth+1), text)
	}
	start, end, times, ok := nodeTimes(rest)
	if !ok {
		return unexpected(expectedNode, text)
	}
	b.reply.Unended = b.reply.Unended || hasNotEnded(rest)
	rest = times
	call, ok := parseCall(rest)
	if !ok {
		return unexpected(expectedNode, text)
	}
	b.path = b.path[:depth-1]
	if string(call.class) == throwClass && depth > 1 {
		b.depth = depth - 1 // a throw has no callees
		b.reply.Nodes[b.path[depth-2]].Throws = b.names.Intern(call.method)
		return nil
	}
	b.depth = depth
	if depth == 1 {
		b.tops++
	}
	b.path = append(b.path, int32(len(b.reply.Nodes)))
	b.reply.Nodes = append(b.reply.Nodes, javamethods.Node{
		Depth: int32(depth - 1), Start: start, End: end,
		Class: b.names.Intern(call.class), Method: b.names.Intern(call.method), Line: call.line, Throws: b.names.Intern(call.throws),
	})
	return nil
}

// nodeDepth returns the depth of a call and the text behind the lines of the tree. Depth 0 means that the line is no
// call.
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

// hasNotEnded reports whether [end,durationms] belongs to a call that has not ended: its end is 0, which is 1970,
// relative to the begin of the tree.
func hasNotEnded(text []byte) bool {
	if '0' <= text[1] && text[1] <= '9' {
		return false // not negative
	}
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

// call is the parsed line of a call.
type call struct {
	class, method, throws []byte
	line                  int32
}

// parseCall reads the text behind the times of a call:
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

// maxLine is the highest line number in a class file.
const maxLine = 1<<16 - 1

// AppendTree adds a tree of calls. An exception of the first call is a line "throw" below it. An exception of another
// call follows on its line.
func AppendTree(b []byte, t *javamethods.Tree) []byte {
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
func isLastCallee(nodes []javamethods.Node, i int) bool {
	for _, n := range nodes[i+1:] {
		if n.Depth <= nodes[i].Depth {
			return n.Depth < nodes[i].Depth
		}
	}
	return true
}

func appendNode(b []byte, n *javamethods.Node, last, isCaller, first bool) []byte {
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
