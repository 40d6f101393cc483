// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/task"
)

// part is one command of a pattern.
type part struct {
	target greys.Target
	// limit is the rest of the limit; 0: there is none.
	limit greys.Limit
	// name tells the part from others of its task, and stands in log lines.
	name string
	// classes and method are those whose replies count; other replies are those of other parts.
	// method is empty where the part has several. No classes: all.
	classes []string
	method  string
	// timed: the times can be true. The lock of the Work guards it.
	timed bool
	// asked is when the part was asked for last.
	asked time.Time
	// lost is how often it was lost, and pauses are those after that; nil: none yet. Both are of the
	// goroutine of the session.
	lost   int
	pauses *backoff.Backoff
}

// owns reports whether replies about a method count.
func (p *part) owns(class, method string) bool {
	return len(p.classes) == 0 || slices.Contains(p.classes, class) && (p.method == "" || p.method == method)
}

// tracesCall reports whether the part has a call tree for a recorded call. The lock of the Work is
// held.
func (p *part) tracesCall(of *greys.Record) bool {
	return p.timed && (p.method == "" || p.method == of.Method) && slices.ContainsFunc(p.classes, func(class string) bool {
		return class == of.Class || of.IsSimple && greys.SimpleName(class) == of.Class
	})
}

// class returns the class of the part; empty: it has several.
func (p *part) class() string {
	switch {
	case len(p.classes) == 1:
		return p.classes[0]
	case len(p.classes) == 0 && isExact(p.target):
		return p.target.Class.String()
	}
	return ""
}

// isExact reports whether a target names one class and one method.
func isExact(t greys.Target) bool {
	return !t.Regexp && !strings.ContainsAny(t.Class.String()+t.Method.String(), "*?")
}

// methodList are methods by class, in order.
type methodList struct {
	classes []string
	methods map[string][]string
}

func (l *methodList) add(class, method string) {
	if l.methods == nil {
		l.methods = map[string][]string{}
	}
	if l.methods[class] == nil {
		l.classes = append(l.classes, class)
	}
	l.methods[class] = append(l.methods[class], method)
}

// count is how many methods some classes have.
func (l *methodList) count(classes []string) (n int) {
	for _, class := range classes {
		n += len(l.methods[class])
	}
	return n
}

// partition is the parts of a pattern.
type partition struct {
	parts []*part
	// shared is how many methods share a command, and so have no times.
	shared int
	// without are classes that have no part.
	without []string
}

// partition makes a part for each method, and parts for several classes where there are more
// methods than most. Stacks have no times, so their methods always share parts.
func (l *methodList) partition(kind task.Kind, left greys.Limit, most int) partition {
	own := l.ownParts(l.classes, left)
	if kind != task.Stack && len(own) <= most {
		return partition{parts: own}
	}
	n := 0
	if kind != task.Stack {
		for room := most - most/sharedShare - 1; n < len(l.classes) && len(l.methods[l.classes[n]]) <= room; n++ {
			room -= len(l.methods[l.classes[n]])
		}
	}
	all := partition{parts: l.ownParts(l.classes[:n], left)}
	for classes := l.classes[n:]; len(classes) > 0; classes = classes[n:] {
		var p *part
		if p, n = l.sharedPart(classes, left); p == nil {
			continue
		}
		if len(all.parts) == most {
			all.without = classes
			break
		}
		all.parts = append(all.parts, p)
		if kind != task.Stack {
			all.shared += l.count(classes[:n])
		}
	}
	return all
}

// sharedShare: one of so many commands is kept for parts of several classes.
const sharedShare = 4

// ownParts makes a part for each method of some classes.
func (l *methodList) ownParts(classes []string, left greys.Limit) (parts []*part) {
	for _, class := range classes {
		for _, method := range l.methods[class] {
			of, err := greys.NewPattern(class)
			named, wrong := greys.NewPattern(method)
			if err != nil || wrong != nil {
				continue // no name of Java's that a console could be asked for
			}
			parts = append(parts, &part{
				target: greys.Target{Class: of, Method: named}, limit: left, name: class + "." + method, classes: []string{class}, method: method, timed: true,
			})
		}
	}
	return parts
}

// sharedPart makes a part for the first n of some classes: as many as a pattern has room for.
// Without room for one it is nil.
func (l *methodList) sharedPart(classes []string, left greys.Limit) (p *part, n int) {
	var target greys.Target
	class, names, known := "", "", map[string]bool{}
	for ; n < len(classes); n++ {
		both, all := class+"|"+regexp.QuoteMeta(classes[n]), names
		for _, method := range l.methods[classes[n]] {
			if !known[method] {
				all += "|" + regexp.QuoteMeta(method)
			}
		}
		of, err := greys.NewPattern(both[1:])
		named, wrong := greys.NewPattern(strings.TrimPrefix(all, "|"))
		if err != nil || wrong != nil {
			break
		}
		class, names = both, all
		for _, method := range l.methods[classes[n]] {
			known[method] = true
		}
		target = greys.Target{Class: of, Method: named, Regexp: true}
	}
	if n == 0 {
		return nil, 1
	}
	return &part{target: target, limit: left, name: fmt.Sprintf("%d classes from %s", n, classes[0]), classes: classes[:n]}, n
}

// listing collects the methods of a pattern into which the server can put code.
type listing struct {
	without map[string]bool
	known   map[[2]string]bool
}

func newListing() *listing {
	return &listing{without: map[string]bool{}, known: map[[2]string]bool{}}
}

// class enters a listed class.
func (l *listing) class(c *greys.Class) {
	if slices.ContainsFunc(c.Kinds, func(kind string) bool { return slices.Contains(kindsWithoutCode, kind) }) {
		l.without[c.Name] = true
	}
}

// method enters a listed method, after all classes.
func (l *listing) method(m *greys.Method) {
	if l.without[m.Class] || l.known[[2]string{m.Class, m.Name}] || isGenerated(m.Class) || !isOrdinary(m.Name) || hasNoCode(m.Modifier) {
		return
	}
	l.known[[2]string{strings.Clone(m.Class), strings.Clone(m.Name)}] = true
}

// inOrder returns the methods in order, and their number.
func (l *listing) inOrder() (list methodList, n int) {
	all := make([][2]string, 0, len(l.known))
	for name := range l.known {
		all = append(all, name)
	}
	slices.SortFunc(all, func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	for _, name := range all {
		list.add(name[0], name[1])
	}
	return list, len(all)
}

// kindsWithoutCode are kinds of classes that the server leaves alone. It does not leave alone the
// lambdas that implement an interface, and fails on them.
var kindsWithoutCode = []string{"interface", "annotation", "enum", "array", "primitive"}

// isGenerated reports whether a class is a lambda, or made by a library at run time:
// com.example.Shop$$Lambda$14/0x0000000800c03000, Shop$$EnhancerBySpringCGLIB$$1, $Proxy12.
func isGenerated(class string) bool {
	return strings.Contains(class, "/") || strings.Contains(class, "$$") || strings.Contains(class, "$Proxy")
}

// isOrdinary reports whether a programmer has named a method: it is no constructor or static
// initialiser, and the compiler has not made it.
func isOrdinary(method string) bool {
	return method != "" && method[0] != '<' && method[0] != '$' &&
		!strings.HasPrefix(method, "lambda$") && !strings.HasPrefix(method, "access$")
}

// hasNoCode reports whether a method has no code, by its modifiers.
func hasNoCode(modifier string) bool {
	return strings.Contains(modifier, "abstract") || strings.Contains(modifier, "native")
}
