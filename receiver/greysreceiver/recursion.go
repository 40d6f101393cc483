// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys"
)

// A method that calls itself, at once or by others, has false times also where it has a command
// of its own: the begin of the inner call replaces that of the outer one. Monitors don't say
// which methods those are. Stacks do: such a method stands in its stack more than once, in those
// of the outer calls too, since the server tells the last stack of the thread. So times of
// monitors are withheld until recursion_check calls of a method were seen whose stacks have it
// once. Where one has it twice the times are left out for good. Recorded calls say their stack
// in their detail.

// nesting is what is known of whether a method calls itself. The process's lock guards it.
type nesting struct {
	// calls is how many calls were seen that are not within another one of the method.
	calls               int
	straight, recursive bool
	// of is the method as monitors name it, and rows is how many of them were withheld.
	of   methodName
	rows int64
}

// maxProofs is how often stacks are asked for the methods that were called too seldom before: each
// time leaves something in their classes.
const maxProofs = 16

// maxStacks is how many stacks the server tells each time, at most.
const maxStacks = 1000

// nestingName names a method as all answers do: the console says a nested class with dots in
// lists, and with dollars elsewhere.
func nestingName(class, method string) methodName {
	return methodName{strings.ReplaceAll(text(class), "$", "."), text(method)}
}

// nestingOf is what is known of a method. The lock is held.
func (p *process) nestingOf(class, method string) *nesting {
	name := nestingName(class, method)
	n := p.nested[name]
	if n == nil {
		n = &nesting{}
		name.class, name.method = strings.Clone(name.class), strings.Clone(name.method)
		p.nested[name] = n
		p.nestedBytes += bytesOfNesting + 2*(len(name.class)+len(name.method))
	}
	return n
}

// hasRoomToNest reports whether one more method may be remembered: servers can name any number.
// Commands of patterns have a method each. The lock is held.
func (p *process) hasRoomToNest() bool {
	limits := &p.env.config.Limits
	return len(p.nested) < p.calls.max+limits.MaxCommands*limits.MaxPatternCommands
}

// isRecursive reports whether a method is known to call itself. The lock is held.
func (p *process) isRecursive(class, method string) bool {
	n := p.nested[nestingName(class, method)]
	return n != nil && n.recursive
}

// withhold has times of a row of a monitor not be said before they are known to be true. The lock
// is held.
func (r *run) withhold(row *greys.MethodStatistics) {
	p := r.process
	if r.process.env.config.RecursionCheck == 0 {
		return
	}
	name := methodName{text(row.Class), text(row.Method)}
	_, known := p.calls.methods[name]
	hasRoom := known || len(p.calls.methods) < p.calls.max && len(p.calls.withheld) < p.calls.max
	n := p.nested[nestingName(row.Class, row.Method)]
	if n == nil && hasRoom && p.hasRoomToNest() {
		n = p.nestingOf(row.Class, row.Method)
	}
	switch {
	case n != nil && n.straight:
	case n == nil || n.recursive || !hasRoom:
		row.HasMean, row.HasRange = false, false
		p.untimed.rows++
	default:
		name.class, name.method = strings.Clone(name.class), strings.Clone(name.method)
		n.of = name
		n.rows++
		p.calls.withheld[name] = true
	}
}

// sawStack is told of a stack, of one of some methods. The lock is held.
func (p *process) sawStack(of map[methodName]bool, frames []greys.Frame) {
	seen := map[methodName]bool{}
	for i, f := range frames {
		name := nestingName(f.Class, f.Method)
		if !of[name] {
			continue
		}
		if seen[name] {
			p.foundRecursive(name)
			continue
		}
		seen[name] = true
		if n := p.nestingOf(f.Class, f.Method); i == 0 && !n.straight && !n.recursive {
			n.calls++
		}
	}
	if len(frames) == 0 {
		return
	}
	first := nestingName(frames[0].Class, frames[0].Method)
	n := p.nested[first]
	if of[first] && !n.recursive && !n.straight && n.calls >= p.env.config.RecursionCheck {
		n.straight = true
		delete(p.calls.withheld, n.of)
	}
}

// foundRecursive is told of a method that calls itself. The lock is held.
func (p *process) foundRecursive(name methodName) {
	n := p.nestingOf(name.class, name.method)
	if n.recursive {
		return
	}
	n.recursive, n.straight = true, false
	p.untimed.rows += n.rows
	delete(p.calls.withheld, n.of)
	if m := p.calls.methods[n.of]; m != nil {
		m.untimed = true
		m.cycle.HasMean, m.cycle.HasRange = false, false
	}
	p.env.telemetry.tell(p)
	p.logger.Warn("A method calls itself: the server reports its times too short. They are left out, and so are its call trees and recorded calls",
		zap.String("method", name.class+"."+name.method))
}

// prove asks for stacks of the methods of a monitor until it is known which call themselves.
func (r *run) prove(ctx context.Context, parts []*part) {
	check := r.process.env.config.RecursionCheck
	if check == 0 || r.task.kind != askMonitor || r.task.unprovable {
		return
	}
	free, ok := r.enhancesAlone()
	if !ok {
		return
	}
	free() // the server has changed classes for all
	var proving sync.WaitGroup
	defer proving.Wait()
	classes, methods := r.unproven(parts)
	for len(classes) > 0 {
		p, n := r.sharedPart(classes, methods, 0)
		if p != nil {
			of := classes[:n]
			proving.Go(func() { r.proveSome(ctx, parts, of) })
		}
		classes = classes[n:]
	}
}

// unproven are the methods of parts, by class, of which it is not known whether they call
// themselves. Names that the server has refused for one class are not asked for with others.
func (r *run) unproven(parts []*part) (classes []string, methods map[string][]string) {
	r.process.mu.Lock()
	defer r.process.mu.Unlock()
	methods = map[string][]string{}
	for _, p := range parts {
		class, method := p.target.Class.String(), p.target.Method.String()
		if !p.timed || p.target.Regexp || r.task.refusedParts[p.name] || slices.ContainsFunc(parts, func(other *part) bool {
			return other.target.Method == p.target.Method && r.task.refusedParts[other.name]
		}) {
			continue
		}
		if n := r.process.nestingOf(class, method); n.straight || n.recursive {
			continue
		}
		if methods[class] == nil {
			classes = append(classes, class)
		}
		methods[class] = append(methods[class], method)
	}
	return classes, methods
}

// proveSome asks for stacks of the methods of some classes, again without those of which enough
// is known.
func (r *run) proveSome(ctx context.Context, parts []*part, of []string) {
	for range maxProofs {
		classes, methods := r.unproven(parts)
		classes = slices.DeleteFunc(classes, func(class string) bool { return !slices.Contains(of, class) })
		if len(classes) == 0 || ctx.Err() != nil {
			return
		}
		p, n := r.sharedPart(classes, methods, 0)
		if p == nil {
			return
		}
		names := map[methodName]bool{}
		for _, class := range classes[:n] {
			for _, method := range methods[class] {
				names[nestingName(class, method)] = true
			}
		}
		switch err := r.askStacks(ctx, p, names); {
		case ctx.Err() != nil:
			return
		case errors.Is(err, greys.ErrRefused), errors.Is(err, greys.ErrUnsupported):
			r.cannotProve(err)
			return
		case err != nil: // the end of the connection, or what came
			p.name = "stacks of " + p.name
			if !r.awaitAgain(p, err) {
				return
			}
		}
	}
}

// askStacks asks for stacks of methods, until enough is known of all or as many came as the limit
// has.
func (r *run) askStacks(ctx context.Context, p *part, names map[methodName]bool) error {
	free, ok := r.enhancesAlone()
	if !ok {
		return nil
	}
	defer free()
	p.asked = r.process.env.now()
	ctx, end := context.WithCancel(ctx)
	defer end()
	limit := greys.Limit(min(maxStacks, r.process.env.config.RecursionCheck*len(names)))
	enough := false
	err := r.link.Run(ctx, greys.StackCommand{Target: p.target, Limit: limit}, func(reply greys.Reply) {
		free()
		stack, is := reply.(*greys.CallStack)
		if !is || ctx.Err() != nil {
			return
		}
		of := r.process
		of.mu.Lock()
		defer of.mu.Unlock()
		of.sawStack(names, stack.Frames)
		enough = true
		for name := range names {
			n := of.nested[name]
			enough = enough && n != nil && (n.straight || n.recursive)
		}
		if enough {
			end()
		}
	})
	if enough {
		return nil
	}
	return err
}

// cannotProve notes that the server sends no stacks: times stay withheld.
func (r *run) cannotProve(why error) {
	r.process.mu.Lock()
	r.task.unprovable = true
	r.process.mu.Unlock()
	r.attending.server.logger.Warn("The server sends no stacks of the methods of a pattern, so the receiver cannot tell which of them call themselves, and leaves their times out. With recursion_check: 0 it delivers them unchecked",
		append(r.task.fields(), zap.Error(cmp.Or(why, errEarly)))...)
	if errors.Is(why, greys.ErrRefused) {
		r.process.poisoned.Store(true)
		r.end(errPoisoned)
	}
}
