// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Load describes the calls that the simulated program makes by itself. The same seed makes the same calls.
type Load struct {
	// Package is the package of all classes; default com.example.shop.
	Package string
	// Classes is the number of classes, and Methods the number of methods of each class.
	Classes, Methods int
	// Rate is the number of outermost calls per second, each with its callees.
	Rate float64
	// Calls is the number of outermost calls before the program rests; 0 means without end.
	Calls int64
	// Failures is the fraction of calls that throw, from 0 to 1.
	Failures float64
	// Threads is the number of threads.
	Threads int
	Seed    uint64
}

// ClassMethods returns the methods of each class, for [Settings].
func (l Load) ClassMethods() map[string][]string {
	all := make(map[string][]string, l.Classes)
	for i := range l.Classes * l.Methods {
		class, method := l.name(i)
		all[class] = append(all[class], method)
	}
	return all
}

// name returns the name of a method by its number.
func (l Load) name(number int) (class, method string) {
	return fmt.Sprintf("%s.Service%d", cmp.Or(l.Package, "com.example.shop"), number/l.Methods), fmt.Sprintf("operation%d", number%l.Methods)
}

// Properties of calls.
const (
	maxCallees  = 3
	maxOwnTime  = 5 * time.Millisecond // before each callee and after the last one
	firstThread = 20
	exception   = "com.example.shop.OutOfStock"
	// step is the interval in which the program makes calls.
	step = 5 * time.Millisecond
)

// Play makes the calls of a load until ctx ends. After a restart the program begins from the start.
func (srv *Server) Play(ctx context.Context, l Load) {
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for life := srv.life(); ctx.Err() == nil; life = srv.life() {
		srv.live(ctx, ticker, life, l)
	}
}

// live makes the calls of one life of the program.
func (srv *Server) live(ctx context.Context, ticker *time.Ticker, life *program, l Load) {
	random, begun, made := rand.New(rand.NewPCG(l.Seed, 0)), time.Now(), int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			due := int64(now.Sub(begun).Seconds() * l.Rate)
			if l.Calls > 0 {
				due = min(due, l.Calls)
			}
			for ; made < due && ctx.Err() == nil; made++ {
				srv.Call(l.next(random))
			}
			if !srv.rests(life, l.Calls > 0 && made == l.Calls) {
				return
			}
		}
	}
}

// rests notes whether a life has made all its calls, and reports whether the life goes on.
func (srv *Server) rests(life *program, is bool) (goesOn bool) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	life.truth.Rests = is
	return srv.program == life
}

func (srv *Server) life() *program {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.program
}

// Call is a call of the program. All jobs that traced its method report it.
func (srv *Server) Call(c Call) { srv.call(c, false) }

// CallInFlight is the end of a call that began before its class was instrumented.
func (srv *Server) CallInFlight(c Call) { srv.call(c, true) }

func (srv *Server) call(c Call, unbegun bool) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.program.made(c)
	if p := &srv.program.profiler; p.isRunning(srv.settings.now()) {
		p.sample(c, "java/lang/Thread.run_[0];")
	}
	for _, s := range srv.sessions {
		if s.job != nil {
			s.job.call(srv, c, nil, srv.settings.now(), unbegun)
		}
	}
}

// next returns the next outermost call.
func (l Load) next(random *rand.Rand) Call {
	c := l.call(random, nil, maxCallees)
	thread := random.IntN(l.Threads)
	c.Thread, c.ThreadID = fmt.Sprintf("worker-%d", thread), int64(firstThread+thread)
	return c
}

// call returns a call with at most so many callees. No method calls one of its callers, unless there are too few methods.
func (l Load) call(random *rand.Rand, callers []int, callees int) Call {
	number := random.IntN(l.Classes * l.Methods)
	for tries := 0; slices.Contains(callers, number) && tries <= len(callers); tries++ {
		number = (number + 1) % (l.Classes * l.Methods)
	}
	c := Call{Line: 10 + random.IntN(90), Cost: l.ownTime(random)}
	c.Class, c.Method = l.name(number)
	callers = append(slices.Clone(callers), number)
	for range random.IntN(callees + 1) {
		callee := l.call(random, callers, max(0, callees-2))
		c.Children = append(c.Children, callee)
		if random.IntN(4) == 0 { // a loop: the same line calls the same method again
			callee.Cost = callee.ownCost() + l.ownTime(random)
			callee.Children, callee.Throws = nil, ""
			c.Children = append(c.Children, callee)
		}
		c.Cost += l.ownTime(random)
	}
	for i := range c.Children {
		c.Cost += c.Children[i].Cost
	}
	if random.Float64() < l.Failures {
		c.Throws, c.Message = exception, "none left"
	}
	return c
}

func (l Load) ownTime(random *rand.Rand) time.Duration {
	return time.Duration(1 + random.Int64N(int64(maxOwnTime)))
}
