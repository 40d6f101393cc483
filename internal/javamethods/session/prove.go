// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// The times of a method that calls itself are false (process/recursion.go). While a monitor runs, the receiver requests
// stacks of its methods until it knows which of them do that.

// askInParts runs all parts of the pattern until they have ended. For a monitor it also requests stacks of the methods.
func (r *partsRun) askInParts() error {
	parts, err := r.makeParts()
	if err != nil || len(parts) == 0 {
		return err
	}
	ctx, end := context.WithCancel(r.ctx)
	var proving sync.WaitGroup
	defer proving.Wait()
	defer end()
	return r.askAll(parts, func() {
		proving.Go(func() { r.prove(ctx, parts) })
	})
}

const (
	// maxProofs is how often stacks of the same methods are requested: each time leaves instrumentation in their
	// classes.
	maxProofs = 16
	// maxStacks is the maximum number of stacks for each request.
	maxStacks = 1000
)

// prove requests stacks of the methods of a monitor until it is known which of them call themselves.
func (r *partsRun) prove(ctx context.Context, parts []*part) {
	if r.work.RecursionCheck == 0 || r.job.Kind != task.Monitor || r.job.unprovable {
		return
	}
	leave, ok := r.work.gate.enterAlone(r.ctx)
	if !ok {
		return
	}
	leave() // the server has instrumented the classes of all parts
	var proving sync.WaitGroup
	defer proving.Wait()
	list := r.unproven(parts)
	for classes := list.classes; len(classes) > 0; {
		p, n := list.sharedPart(classes, 0)
		if p != nil {
			of := classes[:n]
			proving.Go(func() { r.proveClasses(ctx, parts, of) })
		}
		classes = classes[n:]
	}
}

// unproven returns the undecided methods of parts. It omits method names that the server has refused for one class.
func (r *partsRun) unproven(parts []*part) (list methodList) {
	r.work.mu.Lock()
	defer r.work.mu.Unlock()
	refused := r.job.refusedParts
	for _, p := range parts {
		if !p.timed || p.target.Regexp || slices.ContainsFunc(parts, func(other *part) bool {
			return other.target.Method == p.target.Method && refused[other.name]
		}) {
			continue
		}
		if class, method := p.target.Class.String(), p.target.Method.String(); r.work.process.NeedsStacks(class, method) {
			list.add(class, method)
		}
	}
	return list
}

// proveClasses requests stacks of the methods of some classes, repeatedly for methods with too few calls.
func (r *partsRun) proveClasses(ctx context.Context, parts []*part, of []string) {
	for range maxProofs {
		list := r.unproven(parts)
		classes := slices.DeleteFunc(list.classes, func(class string) bool { return !slices.Contains(of, class) })
		if len(classes) == 0 || ctx.Err() != nil {
			return
		}
		p, n := list.sharedPart(classes, 0)
		if p == nil {
			return
		}
		methods := map[process.MethodKey]bool{}
		for _, class := range classes[:n] {
			for _, method := range list.methods[class] {
				methods[process.KeyOf(class, method)] = true
			}
		}
		switch err := r.askStacks(ctx, p, methods); {
		case ctx.Err() != nil:
			return
		case isReply(err):
			r.giveUpProof(err)
			return
		case err != nil: // the connection ended, or a reply could not be decoded
			p.name = "stacks of " + p.name
			if !r.awaitAgain(p, err) {
				return
			}
		}
	}
}

// askStacks requests stacks of methods until all are decided or the limit is reached.
func (r *partsRun) askStacks(ctx context.Context, p *part, methods map[process.MethodKey]bool) error {
	leave, ok := r.work.gate.enterAlone(r.ctx)
	if !ok {
		return nil
	}
	defer leave()
	p.asked = r.work.Now()
	ctx, end := context.WithCancel(ctx)
	defer end()
	limit := javamethods.Limit(min(maxStacks, r.work.RecursionCheck*len(methods)))
	decided := false
	err := r.link.Run(ctx, javamethods.StackCommand{Target: p.target, Limit: limit}, func(reply javamethods.Reply) {
		leave()
		if stack, is := reply.(*javamethods.CallStack); is && ctx.Err() == nil {
			if decided = r.work.process.Stack(methods, stack.Frames); decided {
				end()
			}
		}
	})
	if decided {
		return nil
	}
	return err
}

// giveUpProof records that the server sends no stacks: times stay withheld.
func (r *partsRun) giveUpProof(why error) {
	r.work.mu.Lock()
	r.job.unprovable = true
	r.work.mu.Unlock()
	r.work.Logger.Warn("The server sends no stacks of the methods of a pattern. The receiver cannot tell which methods call themselves, and leaves their times out. With recursion_check: 0 it sends them unchecked",
		append(r.job.LogFields(), zap.Error(why))...)
	if errors.Is(why, javamethods.ErrRefused) {
		r.work.resets.poisoned.Store(true)
		r.end(errPoisoned)
	}
}
