// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/greys"
)

// The released server keeps one begin for each thread and command. Where a method that a command
// matches calls another one that it matches, the begin of the inner call replaces that of the
// outer one: times are too short, and call trees are those of other calls. So by default
// (per_method) a pattern of the console is asked in parts:
//
//  1. The server lists the classes and methods that match.
//  2. Constructors, static initialisers, lambdas, generated classes, interfaces and methods
//     without code are left out, since the server fails on them, or they tell nothing. A pattern
//     without wildcards is asked as it stands, whatever it names.
//  3. Each method has a command of its own, up to limits.max_pattern_commands.
//  4. Classes beyond that share commands, whose times and call trees are left out.
//  5. A command that the server says to match more than one method (overloads, subclasses that
//     override it) has its times and call trees left out, too.
//  6. A part that the server refuses is left out from then on. What it has left in classes is
//     taken out by a reset, and all is asked again without it.

// part is one command of a run.
type part struct {
	// command asks for the target, with what is left of the limit.
	command greys.Command
	target  greys.Target
	// name is what it is about, for people, and what tells it from other parts of the task.
	name string
	// classes and method are those of which it tells; what else the server tells is that of
	// another part. method is empty where it tells of several ones. No classes: of all.
	classes []string
	method  string
	// timed says that its times can be true. The process's lock guards it.
	timed bool
	// asked is when it was asked last. lost is how often it was lost, and pauses are those after
	// that: both are for the goroutine that follows the server.
	asked  time.Time
	lost   int
	pauses *backoff.Backoff
}

// owns reports whether a method is one that the part tells of.
func (p *part) owns(class, method string) bool {
	return len(p.classes) == 0 || slices.Contains(p.classes, class) && (p.method == "" || p.method == method)
}

// tellsTreesOf reports whether the part's call trees are of the method of a recorded call, and are
// handed on. The process's lock is held.
func (p *part) tellsTreesOf(of *greys.Record) bool {
	return p.timed && (p.method == "" || p.method == of.Method) && slices.ContainsFunc(p.classes, func(class string) bool {
		return class == of.Class || of.IsSimple && simpleName(class) == of.Class
	})
}

// class is the class that the part is about, where it is about one; empty: it is not.
func (p *part) class(r *run) string {
	switch {
	case len(p.classes) == 1:
		return p.classes[0]
	case len(p.classes) == 0 && isExact(r.task.target):
		return r.task.target.Class.String()
	}
	return ""
}

// isCareful reports whether the task is asked so that times are true, and that what the server
// refuses is undone.
func (r *run) isCareful() bool {
	return r.process.env.config.PerMethod && r.link.protocol == ProtocolConsole && r.task.kind.enhances()
}

// isExact reports whether a target names one class and one method.
func isExact(t greys.Target) bool {
	return !t.Regexp && !strings.ContainsAny(t.Class.String()+t.Method.String(), "*?")
}

// errPoisoned says that the server has refused a part, and may have left code in classes.
var errPoisoned = errors.New("a refused command is undone by a reset, and the others are asked again")

// askCareful asks for the parts of a pattern.
func (r *run) askCareful() error {
	parts, methods, err := r.parts()
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		r.process.mu.Lock()
		defer r.process.mu.Unlock()
		r.affect(&greys.Affected{})
		return nil
	}
	if methods.known {
		r.process.mu.Lock()
		r.telling = parts
		r.affect(&greys.Affected{Classes: methods.classes, Methods: methods.methods})
		if r.isTry() {
			r.begins()
		}
		r.process.mu.Unlock()
	}
	var running sync.WaitGroup
	var ending sync.Mutex
	var first error
	left, without := len(parts), 0
	for _, p := range parts {
		free, ok := r.enhances()
		if !ok {
			break
		}
		running.Go(func() {
			err := r.askPartAgain(p, methods.known, free)
			ending.Lock()
			defer ending.Unlock()
			switch {
			case r.ctx.Err() != nil:
			case errors.Is(err, errNoCode):
				left, without = left-1, without+1
				r.leftAlone(p, without == len(parts))
			case err == nil && r.task.limit > 0:
				left-- // it has told of as many calls as the limit has
			}
			if err == nil && r.task.limit > 0 || errors.Is(err, errNoCode) {
				if left == 0 && without < len(parts) && r.task.limit > 0 {
					r.end(errEnough)
				}
				return
			}
			err = cmp.Or(err, errEarly)
			if first == nil && r.ctx.Err() == nil {
				first = fmt.Errorf("%s: %w", p.name, err)
				if !methods.known || !isAlone(err) {
					r.partEnded(p, methods.known, err)
				}
			}
		})
	}
	ctx, end := context.WithCancel(r.ctx)
	var proving sync.WaitGroup
	proving.Go(func() { r.prove(ctx, parts) })
	running.Wait()
	end()
	proving.Wait()
	if first == nil {
		first = r.ctx.Err()
	}
	return first
}

// startsAtOnce is how many commands the server is asked for until it has changed classes.
const startsAtOnce = 8

// enhances waits until the server may be asked to change classes, and gives what says that it has.
// ok is false where the run is over.
func (r *run) enhances() (done func(), ok bool) {
	if r.process.apart.Load() {
		return r.enhancesAlone()
	}
	return r.takePlaces(1)
}

// enhancesAlone waits until no other command has the server change classes.
func (r *run) enhancesAlone() (done func(), ok bool) {
	r.process.alone.Lock()
	defer r.process.alone.Unlock()
	return r.takePlaces(startsAtOnce)
}

// takePlaces takes n of the places for commands that have the server change classes.
func (r *run) takePlaces(n int) (done func(), ok bool) {
	for taken := range n {
		select {
		case r.process.enhancing <- struct{}{}:
		case <-r.ctx.Done():
			for range taken {
				<-r.process.enhancing
			}
			return nil, false
		}
	}
	return sync.OnceFunc(func() {
		for range n {
			<-r.process.enhancing
		}
	}), true
}

// askPartAgain asks for a part until it ends by its limit or the server says no, again where it
// was lost. A part that is the whole pattern ends with its run.
func (r *run) askPartAgain(p *part, counted bool, free func()) error {
	for {
		p.asked = r.process.env.now()
		err := r.askPart(p, counted, free)
		ended := err == nil && r.task.limit > 0
		if ended || !counted || errors.Is(err, errNoCode) || err != nil && !isAlone(err) {
			return err
		}
		if !r.awaitAgain(p, cmp.Or(err, errEarly)) {
			return err
		}
		p.command = r.commandAgain(p)
		again, ok := r.enhances()
		if !ok {
			return err
		}
		free = again
	}
}

// askPart asks for a part until it ends, by its limit without an error. Nothing is asked after a
// command that the server has refused: which of two it refuses for itself would not be known.
func (r *run) askPart(p *part, counted bool, free func()) error {
	defer free()
	if r.process.poisoned.Load() {
		return errPoisoned
	}
	ctx, end := context.WithCancel(r.ctx)
	defer end()
	noCode := false
	err := r.link.Run(ctx, p.command, func(reply greys.Reply) {
		if of, is := reply.(*greys.Affected); is && counted && of.Methods == 0 {
			noCode = true
			end()
		}
		free() // it says nothing before it has changed classes
		r.eachOf(p, counted, reply)
	})
	if errors.Is(err, greys.ErrRefused) {
		r.process.poisoned.Store(true)
		if !r.process.apart.Swap(true) {
			return errPoisoned // all are asked again, one at a time
		}
	}
	if noCode && r.ctx.Err() == nil {
		return errNoCode
	}
	return err
}

// errNoCode says that the server lists a method, and has put no code into it.
var errNoCode = errors.New("the server lists the method, and has put no code into it")

// leftAlone is told of a part that the server has put no code for into classes, and whether that
// is so of all parts.
func (r *run) leftAlone(p *part, all bool) {
	r.process.mu.Lock()
	r.task.matched.methods--
	r.process.mu.Unlock()
	r.process.env.telemetry.methodsLeftOut(1, leftOutNoCode)
	if _, say := r.task.leavingAlone.Say(r.process.env.now()); say {
		r.attending.server.logger.Warn("The server lists a method, and leaves it alone: its library can't read classes of newer Java, such as nested ones that are compiled for Java 11. The program's standard output has the reason",
			append(r.task.fields(), zap.String("method", p.name))...)
	}
	if all {
		r.process.mu.Lock()
		defer r.process.mu.Unlock()
		r.matched = false
		r.affect(&greys.Affected{})
	}
}

// partEnded is told of the first part that has ended, and with it all.
func (r *run) partEnded(p *part, counted bool, err error) {
	switch {
	case errors.Is(err, greys.ErrRefused) && counted:
		r.refusedPart(p, err)
		r.end(errPoisoned)
	case errors.Is(err, errPoisoned):
		r.end(errPoisoned)
	default:
		r.end(errPart)
	}
}

// errPart says that a part has ended as it should not.
var errPart = errors.New("a command of the pattern has ended")

// parts are the commands of the task, and how much they match together, where that is known.
func (r *run) parts() ([]*part, matched, error) {
	target, left := r.task.target, r.task.left()
	if isExact(target) {
		return []*part{{command: r.task.commandOf(target, left), target: target, name: r.task.pattern, timed: true}}, matched{}, nil
	}
	listed, err := r.listMethods(target)
	if err != nil {
		return nil, matched{}, err
	}
	byClass := map[string][]string{}
	var classes []string
	for _, m := range listed {
		if byClass[m.class] == nil {
			classes = append(classes, m.class)
		}
		byClass[m.class] = append(byClass[m.class], m.method)
	}
	parts := r.ownParts(classes, byClass, left)
	most := r.process.env.config.Limits.MaxPatternCommands
	shared := 0
	if r.task.kind == askStack || len(parts) > most {
		parts, shared = r.sharedParts(classes, byClass, left, most)
	}
	parts = slices.DeleteFunc(parts, func(p *part) bool { return r.task.refusedParts[p.name] })
	if shared > 0 {
		r.attending.server.logger.Warn("A pattern matches more methods than may have a command of their own: times and call trees of the others are left out",
			append(r.task.fields(), zap.Int("methods", len(listed)), zap.Int("methods_without_times", shared), zap.Int("limits.max_pattern_commands", most))...)
	}
	return parts, matched{classes: int64(len(classes)), methods: int64(len(listed)), known: true}, nil
}

// ownParts are parts for each method.
func (r *run) ownParts(classes []string, methods map[string][]string, left greys.Limit) (parts []*part) {
	for _, class := range classes {
		for _, method := range methods[class] {
			var one greys.Target
			var err, wrong error
			one.Class, err = greys.NewPattern(class)
			one.Method, wrong = greys.NewPattern(method)
			if err != nil || wrong != nil {
				continue // no Java name that a console could be asked for
			}
			parts = append(parts, &part{
				command: r.task.commandOf(one, left), target: one, name: class + "." + method, classes: []string{class}, method: method, timed: true,
			})
		}
	}
	return parts
}

// sharedParts are parts for each method of as many classes as have room, and parts for several
// classes each for all others, of which shared is how many methods they have.
func (r *run) sharedParts(classes []string, methods map[string][]string, left greys.Limit, most int) (parts []*part, shared int) {
	own := 0
	if r.task.kind != askStack { // stacks have no times
		for room := most - most/sharedShare - 1; own < len(classes) && len(methods[classes[own]]) <= room; own++ {
			room -= len(methods[classes[own]])
		}
	}
	parts = r.ownParts(classes[:own], methods, left)
	for classes = classes[own:]; len(classes) > 0; {
		p, n := r.sharedPart(classes, methods, left)
		if p == nil {
			classes = classes[n:]
			continue
		}
		if len(parts) == most {
			rest := 0
			for _, class := range classes {
				rest += len(methods[class])
			}
			r.process.env.telemetry.methodsLeftOut(rest, leftOutNoRoom)
			r.attending.server.logger.Warn("A pattern needs more commands than it may have: its other classes are not watched",
				append(r.task.fields(), zap.Int("classes_not_watched", len(classes)), zap.Int("limits.max_pattern_commands", most))...)
			break
		}
		parts = append(parts, p)
		if r.task.kind != askStack {
			for _, class := range classes[:n] {
				shared += len(methods[class])
			}
		}
		classes = classes[n:]
	}
	return parts, shared
}

// sharedShare is the part of commands that several classes share: one of so many.
const sharedShare = 4

// sharedPart is a command for the first n of the classes: as many as a pattern has room for.
// Without room for one it is nil.
func (r *run) sharedPart(classes []string, methods map[string][]string, left greys.Limit) (p *part, n int) {
	var target greys.Target
	var class string
	names, known := "", map[string]bool{}
	for ; n < len(classes); n++ {
		both := class + "|" + regexp.QuoteMeta(classes[n])
		all := names
		for _, method := range methods[classes[n]] {
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
		for _, method := range methods[classes[n]] {
			known[method] = true
		}
		target = greys.Target{Class: of, Method: named, Regexp: true}
	}
	if n == 0 {
		return nil, 1
	}
	return &part{command: r.task.commandOf(target, left), target: target, name: fmt.Sprintf("%d classes from %s", n, classes[0]), classes: classes[:n]}, n
}

// listedMethod is a method, whichever its parameters.
type listedMethod struct{ class, method string }

// listMethods gives the methods that the server can count calls of.
func (r *run) listMethods(target greys.Target) (methods []listedMethod, err error) {
	without := map[string]bool{}
	err = r.link.Run(r.ctx, greys.ClassesCommand{Class: target.Class, Regexp: target.Regexp}, func(reply greys.Reply) {
		if c, is := reply.(*greys.Class); is && slices.ContainsFunc(c.Kinds, func(kind string) bool { return slices.Contains(kindsWithoutCode, kind) }) {
			without[c.Name] = true
		}
	})
	if err != nil {
		return nil, err
	}
	known := map[listedMethod]bool{}
	err = r.link.Run(r.ctx, greys.MethodsCommand{Target: target}, func(reply greys.Reply) {
		m, is := reply.(*greys.Method)
		if !is {
			return
		}
		name := listedMethod{m.Class, m.Name}
		if without[m.Class] || known[name] || isGenerated(m.Class) || !isOrdinary(m.Name) || hasNoCode(m.Modifier) {
			return
		}
		name.class, name.method = strings.Clone(m.Class), strings.Clone(m.Name)
		known[name] = true
	})
	for name := range known {
		methods = append(methods, name)
	}
	slices.SortFunc(methods, func(a, b listedMethod) int {
		return cmp.Or(strings.Compare(a.class, b.class), strings.Compare(a.method, b.method))
	})
	return methods, err
}

// kindsWithoutCode are kinds of classes that the server leaves alone. It does not leave alone
// the lambdas that implement an interface, and fails on them.
var kindsWithoutCode = []string{"interface", "annotation", "enum", "array", "primitive"}

// isGenerated reports whether a class is a lambda or is made by a library while the program runs:
// com.example.Shop$$Lambda$14/0x0000000800c03000, Shop$$EnhancerBySpringCGLIB$$1, $Proxy12.
func isGenerated(class string) bool {
	return strings.Contains(class, "/") || strings.Contains(class, "$$") || strings.Contains(class, "$Proxy")
}

// isOrdinary reports whether a method is one that a programmer has named: no constructor or
// static initialiser, and none that the compiler has made.
func isOrdinary(method string) bool {
	return method != "" && method[0] != '<' && method[0] != '$' &&
		!strings.HasPrefix(method, "lambda$") && !strings.HasPrefix(method, "access$")
}

// hasNoCode reports whether the modifiers of a method say that no code can be put into it.
func hasNoCode(modifier string) bool {
	return strings.Contains(modifier, "abstract") || strings.Contains(modifier, "native")
}

// eachOf handles an answer to a part. counted says that how much the parts match is known.
func (r *run) eachOf(p *part, counted bool, reply greys.Reply) {
	of := r.process
	of.mu.Lock()
	untrue := false
	switch reply := reply.(type) {
	case *greys.Affected:
		if reply.Methods != 1 && p.timed {
			p.timed = false
			if reply.Methods > 1 && r.task.kind != askStack {
				r.attending.server.logger.Warn("A command matches several methods of one name, which may call each other: its times and call trees are left out",
					append(r.task.fields(), zap.String("method", p.name), zap.Int64("methods", reply.Methods))...)
			}
		}
		if counted { // the part of it was said before
			of.mu.Unlock()
			return
		}
	case *greys.Statistics:
		reply.Methods = slices.DeleteFunc(reply.Methods, func(m greys.MethodStatistics) bool { return !p.owns(m.Class, m.Method) })
		if !p.timed {
			for i := range reply.Methods {
				reply.Methods[i].HasMean, reply.Methods[i].HasRange = false, false
			}
			of.untimed.rows += int64(len(reply.Methods))
		} else {
			for i := range reply.Methods {
				r.withhold(&reply.Methods[i])
			}
		}
	case *greys.Tree:
		root := reply.Nodes[0]
		untrue = !p.timed || reply.Unended || !p.owns(root.Class, root.Method) || of.isRecursive(root.Class, root.Method)
	case *greys.Record:
		untrue = !p.timed || of.isRecursive(p.target.Class.String(), p.target.Method.String())
		if class := p.class(r); reply.IsSimple && simpleName(class) == reply.Class {
			reply.Class = class
		}
	}
	if untrue {
		if r.task.kind == askTrace {
			of.untimed.trees++
		} else {
			of.untimed.records++
		}
		of.env.telemetry.tell(of)
	}
	of.mu.Unlock()
	if !untrue {
		r.each(reply)
	}
}

// refusedPart is told that the server has refused a part, which is left out from then on.
func (r *run) refusedPart(p *part, why error) {
	r.process.mu.Lock()
	if r.task.refusedParts == nil {
		r.task.refusedParts = map[string]bool{}
	}
	r.task.refusedParts[p.name], p.timed = true, false
	r.process.mu.Unlock()
	r.process.env.telemetry.methodsLeftOut(1, leftOutRefused)
	r.attending.server.logger.Warn("The server could not put its code into a method: it is left out, and a reset undoes what is left of it. The program's standard output has the reason; a pattern that doesn't match the method spares the reset",
		append(r.task.fields(), zap.String("method", p.name), zap.Error(why))...)
}
