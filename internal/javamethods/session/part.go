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
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// part is one command of a pattern.
type part struct {
	target javamethods.Target
	// limit is the rest of the limit; 0 means no limit.
	limit javamethods.Limit
	// name identifies the part within its task, also in log lines.
	name string
	// classes and method select the replies that count; other replies belong to other parts. An empty method means that
	// the part has several. No classes means all.
	classes []string
	method  string
	// timed means that the times can be true. The lock of the Work guards it.
	timed bool
	// asked is the time when the command was last sent.
	asked time.Time
	// lost is how often the command was lost. pauses are the pauses after that; nil means none so far. The goroutine of
	// the session owns both.
	lost   int
	pauses *backoff.Backoff
}

// owns reports whether replies about a method count for the part.
func (p *part) owns(class, method string) bool {
	return len(p.classes) == 0 || slices.Contains(p.classes, class) && (p.method == "" || p.method == method)
}

// tracesCall reports whether the part has a call tree for a recorded call. The caller holds the lock of the Work.
func (p *part) tracesCall(of *javamethods.Record) bool {
	return p.timed && (p.method == "" || p.method == of.Method) && slices.ContainsFunc(p.classes, func(class string) bool {
		return class == of.Class || of.IsSimple && javamethods.SimpleName(class) == of.Class
	})
}

// class returns the class of the part; empty means that it has several.
func (p *part) class() string {
	switch {
	case len(p.classes) == 1:
		return p.classes[0]
	case len(p.classes) == 0 && isExact(p.target):
		return p.target.Class.String()
	}
	return ""
}

// isExact reports whether a target has exactly one class and one method.
func isExact(t javamethods.Target) bool {
	return !t.Regexp && !strings.ContainsAny(t.Class.String()+t.Method.String(), "*?")
}

// methodList has methods by class, in order.
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

// count returns the number of methods of some classes.
func (l *methodList) count(classes []string) (n int) {
	for _, class := range classes {
		n += len(l.methods[class])
	}
	return n
}

// partition is the set of parts of a pattern.
type partition struct {
	parts []*part
	// shared is the number of methods that share a command, and so have no times.
	shared int
	// without are the classes that have no part.
	without []string
}

// partition makes a part for each method. If there are more than most, it makes parts of several classes too. Methods
// of stack tasks always share parts, because stacks have no times.
func (l *methodList) partition(kind task.Kind, limit javamethods.Limit, most int) partition {
	own := l.ownParts(l.classes, limit)
	if kind != task.Stack && len(own) <= most {
		return partition{parts: own}
	}
	n := 0
	if kind != task.Stack {
		for room := most - most/sharedShare - 1; n < len(l.classes) && len(l.methods[l.classes[n]]) <= room; n++ {
			room -= len(l.methods[l.classes[n]])
		}
	}
	all := partition{parts: l.ownParts(l.classes[:n], limit)}
	for classes := l.classes[n:]; len(classes) > 0; classes = classes[n:] {
		var p *part
		if p, n = l.sharedPart(classes, limit); p == nil {
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

// sharedShare is the share of commands for parts of several classes: one in so many.
const sharedShare = 4

// ownParts makes a part for each method of some classes.
func (l *methodList) ownParts(classes []string, limit javamethods.Limit) (parts []*part) {
	for _, class := range classes {
		for _, method := range l.methods[class] {
			of, err := javamethods.NewPattern(class)
			named, wrong := javamethods.NewPattern(method)
			if err != nil || wrong != nil {
				continue // the console cannot be asked for this name
			}
			parts = append(parts, &part{
				target: javamethods.Target{Class: of, Method: named}, limit: limit, name: class + "." + method, classes: []string{class}, method: method, timed: true,
			})
		}
	}
	return parts
}

// sharedPart makes a part for the first n of some classes: as many as fit a pattern. It is nil if not even one fits.
func (l *methodList) sharedPart(classes []string, limit javamethods.Limit) (p *part, n int) {
	var target javamethods.Target
	class, names, known := "", "", map[string]bool{}
	for ; n < len(classes); n++ {
		both, all := class+"|"+regexp.QuoteMeta(classes[n]), names
		for _, method := range l.methods[classes[n]] {
			if !known[method] {
				all += "|" + regexp.QuoteMeta(method)
			}
		}
		of, err := javamethods.NewPattern(both[1:])
		named, wrong := javamethods.NewPattern(strings.TrimPrefix(all, "|"))
		if err != nil || wrong != nil {
			break
		}
		class, names = both, all
		for _, method := range l.methods[classes[n]] {
			known[method] = true
		}
		target = javamethods.Target{Class: of, Method: named, Regexp: true}
	}
	if n == 0 {
		return nil, 1
	}
	return &part{target: target, limit: limit, name: fmt.Sprintf("%d classes from %s", n, classes[0]), classes: classes[:n]}, n
}

// listing collects the methods of a pattern that the server can instrument.
type listing struct {
	without map[string]bool
	known   map[[2]string]bool
}

func newListing() *listing {
	return &listing{without: map[string]bool{}, known: map[[2]string]bool{}}
}

// class adds a listed class.
func (l *listing) class(c *javamethods.Class) {
	if slices.ContainsFunc(c.Kinds, func(kind string) bool { return slices.Contains(kindsWithoutCode, kind) }) {
		l.without[c.Name] = true
	}
}

// method adds a listed method, after all classes.
func (l *listing) method(m *javamethods.Method) {
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

// kindsWithoutCode are the kinds of classes that the server does not instrument. It does instrument lambdas that
// implement an interface, and fails.
var kindsWithoutCode = []string{"interface", "annotation", "enum", "array", "primitive"}

// isGenerated reports whether a class is a lambda, or was generated by a library at run time:
// com.example.Shop$$Lambda$14/0x0000000800c03000, Shop$$EnhancerBySpringCGLIB$$1, $Proxy12.
func isGenerated(class string) bool {
	return strings.Contains(class, "/") || strings.Contains(class, "$$") || strings.Contains(class, "$Proxy")
}

// isOrdinary reports whether a programmer has named a method: it is neither a constructor or static initialiser, nor
// generated by the compiler.
func isOrdinary(method string) bool {
	return method != "" && method[0] != '<' && method[0] != '$' &&
		!strings.HasPrefix(method, "lambda$") && !strings.HasPrefix(method, "access$")
}

// hasNoCode reports whether a method has no code, by its modifiers.
func hasNoCode(modifier string) bool {
	return strings.Contains(modifier, "abstract") || strings.Contains(modifier, "native")
}
