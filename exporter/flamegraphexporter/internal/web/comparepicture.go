// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treediff"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// Bounds of a picture: the number of frames, and the least width of a frame, as a part of the picture.
const (
	mostFrames    = 1500
	leastWidth    = 0.001
	frameHeight   = 18 // pixels
	textBaseline  = 13
	widestPicture = 100 // percent
)

// aloneTree is a part of a merged tree: a path with all below it, and the frames above it.
type aloneTree struct {
	nodes    []treediff.Node
	function string
}

// alone returns the part of a merged tree below a path. The frames above have no values of their own, so they are as
// wide as the path.
func alone(nodes []treediff.Node, path uint64) (aloneTree, bool) {
	at := slices.IndexFunc(nodes, func(n treediff.Node) bool { return n.Path == path })
	if at < 0 {
		return aloneTree{}, false
	}
	var above []int32
	for i := nodes[at].Parent; i >= 0; i = nodes[i].Parent {
		above = append(above, i)
	}
	out := make([]treediff.Node, 0, len(above)+1)
	for parent, i := range slices.Backward(above) {
		n := nodes[i]
		n.Parent = int32(len(above)-1-parent) - 1
		n.Before.Self, n.After.Self = 0, 0
		out = append(out, n)
	}
	places := map[int32]int32{}
	for i := at; i < len(nodes); i++ {
		n := nodes[i]
		parent, inside := places[n.Parent]
		if i == at {
			parent, inside = int32(len(out))-1, true
		}
		if !inside {
			break // the subtree is without a gap
		}
		n.Parent = parent
		places[int32(i)] = int32(len(out))
		out = append(out, n)
	}
	return aloneTree{out, nodes[at].Function}, true
}

// longestFrameLink is the longest link that each frame has, without the path: names in it can be long.
const longestFrameLink = 1 << 10

// frameLink returns the link of frames, or nothing if it is too long.
func (c *comparison) frameLink() string {
	if link := c.Link(); len(link) <= longestFrameLink {
		return link
	}
	return ""
}

// FramesHaveLinks reports whether a frame can be shown alone.
func (c *comparison) FramesHaveLinks() bool { return c.frameLink() != "" }

// draw draws the pictures: the difference, and both trees with the same scale, beside each other.
func (c *comparison) draw() {
	before := treediff.Weights(c.merged, func(n *treediff.Node) float64 { return c.factor * c.By.width(&n.Before) })
	after := treediff.Weights(c.merged, func(n *treediff.Node) float64 { return c.By.width(&n.After) })
	both := make([]float64, len(c.merged))
	for i := range both {
		both[i] = before[i] + after[i]
	}
	depths := treediff.Depths(c.merged)
	widest := max(topSum(c.merged, before), topSum(c.merged, after))
	c.Pictures = []picture{
		{"Difference", c.picture(depths, both, topSum(c.merged, both))},
		{"Before: " + c.Before.Label, c.picture(depths, before, widest)},
		{"After: " + c.After.Label, c.picture(depths, after, widest)},
	}
}

func topSum(nodes []treediff.Node, w []float64) (sum float64) {
	for i := range nodes {
		if nodes[i].Parent < 0 {
			sum += w[i]
		}
	}
	return sum
}

// picture draws the merged tree with frames of these weights. The whole width stands for a weight. The wide frames are
// drawn, at most mostFrames. A frame is a link to the page that shows it alone, and has all values in its title.
func (c *comparison) picture(depths []int32, w []float64, whole float64) template.HTML {
	wide := treeformat.NewWidest(w, depths, max(whole*leastWidth, math.SmallestNonzeroFloat64), mostFrames)
	starts := make([]float64, len(w)) // where the next child begins; first where the frame itself does
	top, deepest := 0.0, int32(0)
	link := c.frameLink()
	var frames bytes.Buffer
	for i := range c.merged {
		n := &c.merged[i]
		start := &top
		if n.Parent >= 0 {
			start = &starts[n.Parent]
		}
		at := *start
		*start += w[i]
		starts[i] = at
		if wide.Selects(w[i], depths[i]) {
			deepest = max(deepest, depths[i])
			c.frame(&frames, n, link, at/whole, w[i]/whole, int(depths[i]))
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg class="flames" width="100%%" height="%d" role="img" xmlns="http://www.w3.org/2000/svg">`, (int(deepest)+1)*frameHeight)
	box(&b, "all", "all", link, "d0", 0, min(top/max(whole, math.SmallestNonzeroFloat64), 1), 0)
	b.Write(frames.Bytes())
	b.WriteString("</svg>")
	return template.HTML(b.String()) // box escapes all texts
}

// frame draws a node. The link leads to the page with all paths. It may be empty.
func (c *comparison) frame(b *bytes.Buffer, n *treediff.Node, link string, at, width float64, depth int) {
	name := shownName(n.Function)
	if n.Mark == calltree.Truncated {
		name += truncatedMark
	}
	if link != "" {
		link += "&" + queryAt + "=" + strconv.FormatUint(n.Path, 16)
	}
	box(b, withoutPackage(name), name+"\n"+c.details(n), link, c.colour(n), at, width, depth)
}

// withoutPackage is a Java method without its package: Cart.add of com.example.Cart.add. Other names are not changed.
func withoutPackage(name string) string {
	method := strings.LastIndexByte(strings.TrimSuffix(name, truncatedMark), '.')
	if method <= 0 || strings.ContainsAny(name[:method], " :()#&*,") {
		return name
	}
	return name[strings.LastIndexByte(name[:method], '.')+1:]
}

// truncatedMark ends the names of truncated calls.
const truncatedMark = " (truncated)"

// box draws a frame: a link, if there is one, with a rectangle, a text that is cut at its end, and a title.
func box(b *bytes.Buffer, text, title, link, class string, at, width float64, depth int) {
	begin, end := "<g>", "</g>"
	if link != "" {
		begin, end = `<a href="`+html.EscapeString(link)+`">`, "</a>"
	}
	fmt.Fprintf(b, `%s<svg x="%.3f%%" y="%d" width="%.3f%%" height="%d"><title>%s</title><rect class="%s" width="100%%" height="100%%"/>`,
		begin, at*widestPicture, depth*frameHeight, width*widestPicture, frameHeight, html.EscapeString(title), class)
	if width > 10*leastWidth {
		fmt.Fprintf(b, `<text x="3" y="%d">%s</text>`, textBaseline, html.EscapeString(text))
	}
	b.WriteString("</svg>" + end)
}

// details are the values of a path in both trees, a line for each.
func (c *comparison) details(n *treediff.Node) string {
	calls, total := c.factor*float64(n.Before.Calls), c.factor*float64(n.Before.Total)
	text := fmt.Sprintf("%s %s → %s (%s)\n%s %s → %s (%s)", c.Word("calls"), figures.Count(countOf(calls)), figures.Count(n.After.Calls),
		change(calls, float64(n.After.Calls)), c.Word("time"), c.amount(total), c.amount(float64(n.After.Total)), change(total, float64(n.After.Total)))
	perCall := measures[len(measures)-1].value
	before, inBefore := perCall(&n.Before)
	after, inAfter := perCall(&n.After)
	if inBefore && inAfter {
		text += fmt.Sprintf("\n%s %s → %s (%s)", c.Word("call"), c.amount(before), c.amount(after), change(before, after))
	}
	return text
}

// steps is the number of colours for more, and for less.
const steps = 5

// colour returns the class of a node's colour: d0 is no change, d1 to d5 more, and l1 to l5 less. A path of only one tree
// has the strongest colour, or with the time of a call, which it cannot have in both, the class dn.
func (c *comparison) colour(n *treediff.Node) string {
	before, inBefore := c.By.value(&n.Before)
	after, inAfter := c.By.value(&n.After)
	if !inBefore || !inAfter {
		return "dn"
	}
	if c.By.Key != "call" {
		before *= c.factor
	}
	if before <= 0 && after <= 0 {
		return "d0"
	}
	change := (after - before) / (math.Abs(after) + math.Abs(before)) // -1 to 1
	step := int(math.Round(change * steps))
	if step == 0 && math.Abs(change) > 0.02 {
		step = int(math.Copysign(1, change))
	}
	if step < 0 {
		return fmt.Sprintf("l%d", -step)
	}
	return fmt.Sprintf("d%d", step)
}
