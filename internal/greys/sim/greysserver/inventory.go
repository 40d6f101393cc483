// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"cmp"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// newEvents watches single calls, up to a limit.
func newEvents(limit javamethods.Limit) *watch {
	w := &watch{events: make(chan event, maxEvents), remaining: int64(limit)}
	if limit <= 0 {
		w.remaining = -1
	}
	return w
}

// classes returns the program's classes that match a pattern.
func (l *life) classes(command javamethods.ClassesCommand) (classes []javamethods.Class, err error) {
	m, err := matcher(command.Class, command.Regexp)
	if err != nil {
		return nil, err
	}
	for class := range l.options.Classes {
		if name := className(class); m.MatchString(name) {
			c := javamethods.Class{
				Name: name, CodeSource: "/opt/shop/lib/shop.jar", Modifier: "1", Super: "java.lang.Object",
				Interfaces: []string{"java.io.Serializable"}, Annotations: []string{"com.example.shop.Served"},
				Loaders: []string{"sun.misc.Launcher$AppClassLoader@58644d46", "sun.misc.Launcher$ExtClassLoader@7ea987ac"},
			}
			if command.Fields {
				c.Fields = []javamethods.Field{{Modifier: "26", Type: "java.lang.String", Name: "NAME", Value: simpleName(class)}}
			}
			classes = append(classes, c)
		}
		for _, of := range l.others(class) {
			if m.MatchString(of.class) {
				classes = append(classes, javamethods.Class{Name: of.class, Kinds: of.kinds, Super: "java.lang.Object"})
			}
		}
	}
	return classes, nil
}

// methods returns the program's methods that match patterns.
func (l *life) methods(command javamethods.MethodsCommand) (methods []javamethods.Method, err error) {
	classes, names, err := matchers(command.Target)
	if err != nil {
		return nil, err
	}
	for m := range l.options.methods() {
		if name := l.options.nameOf(method(m)); classes.MatchString(name.Class) && names.MatchString(name.Method) {
			methods = append(methods, javamethods.Method{
				Class: name.Class, Name: name.Method, Modifier: "1", Parameters: []string{"java.lang.String", "int"},
				Exceptions: []string{exception}, Return: "java.lang.Object",
			})
		}
	}
	for class := range l.options.Classes {
		for _, of := range append(l.others(class), other{class: className(class), method: "<init>"}) {
			if l.options.Lambdas && classes.MatchString(of.class) && names.MatchString(of.method) {
				methods = append(methods, javamethods.Method{Class: of.class, Name: of.method, Modifier: "public", Return: "void"})
			}
		}
	}
	return methods, nil
}

// resetAll resets the classes of a command.
func (l *life) resetAll(command javamethods.ResetCommand) (classes int64, err error) {
	m, err := matcher(command.Class, command.Regexp)
	if err != nil {
		return 0, err
	}
	return l.reset(m.MatchString), nil
}

// sessionsOf returns the sessions, the oldest first.
func (s *Server) sessionsOf(l *life) *javamethods.Sessions {
	l.mu.Lock()
	defer l.mu.Unlock()
	sessions := &javamethods.Sessions{ProcessID: l.truth.ProcessID}
	for id, of := range l.sessions {
		sessions.Sessions = append(sessions.Sessions, javamethods.Session{
			ID: id, Duration: s.options.SessionTimeout, Charset: "UTF-8", From: of.from, To: of.to,
		})
	}
	slices.SortFunc(sessions.Sessions, func(a, b javamethods.Session) int { return cmp.Compare(a.ID, b.ID) })
	return sessions
}

// stackOf returns the stack of a call.
func (l *life) stackOf(e event) *javamethods.CallStack {
	s := &javamethods.CallStack{Thread: e.thread}
	line := int32(-1)
	for _, m := range e.stack {
		name := l.options.nameOf(m)
		s.Frames = append(s.Frames, javamethods.Frame{Class: name.Class, Method: name.Method, File: simpleName(l.options.classOf(m)) + ".java", Line: line})
		line = e.call.line
	}
	s.Frames = append(s.Frames,
		javamethods.Frame{Class: packageName + ".Dispatcher", Method: "dispatch", File: "Dispatcher.java", Line: e.call.line},
		javamethods.Frame{Class: "java.lang.Thread", Method: "run", File: "Thread.java", Line: 750})
	return s
}

// treeOf returns the tree of a call with its direct callees.
func (l *life) treeOf(e event) *javamethods.Tree {
	root := l.node(e.call, e.call.start, 0)
	root.Line = 0
	t := &javamethods.Tree{Thread: e.thread, Nodes: []javamethods.Node{root}}
	for _, callee := range e.call.callees {
		t.Nodes = append(t.Nodes, l.node(callee, e.call.start, 1))
	}
	return t
}

func (l *life) node(c call, begin time.Duration, depth int32) javamethods.Node {
	name := l.options.nameOf(c.method)
	return javamethods.Node{
		Depth: depth, Start: c.start - begin, End: c.end - begin, Class: name.Class, Method: name.Method, Line: c.line, Throws: c.throws,
	}
}
