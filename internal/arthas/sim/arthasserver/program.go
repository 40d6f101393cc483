// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"
)

// class is a loaded class.
type class struct {
	name    string
	methods []string
	// registered means that the server knows that it instrumented the class: a reset restores such classes.
	registered bool
	// instrumented means that the class is slow. A reset during a job leaves it so.
	instrumented bool
}

// program is the simulated program. The server's lock guards it.
type program struct {
	classes []*class
	// begun is when the program started.
	begun    time.Time
	truth    Truth
	profiler profiler
}

func newProgram(methods map[string][]string, now time.Time, processID int) *program {
	p := &program{begun: now, truth: Truth{ProcessID: processID, Made: Counts{}, Reported: Counts{}}}
	for name, m := range methods {
		p.classes = append(p.classes, &class{name: name, methods: m})
	}
	sort.Slice(p.classes, func(i, j int) bool { return p.classes[i].name < p.classes[j].name })
	return p
}

// matching returns the classes whose names match.
func (p *program) matching(pattern string, isRegexp bool) (found []*class) {
	matches := matcher(pattern, isRegexp)
	for _, c := range p.classes {
		if matches(c.name) {
			found = append(found, c)
		}
	}
	return found
}

// matches reports whether a pattern matches a whole name.
func matches(pattern, name string, isRegexp bool) bool { return matcher(pattern, isRegexp)(name) }

// matcher returns a function that reports whether a pattern matches a whole name.
func matcher(pattern string, isRegexp bool) func(name string) bool {
	expression := pattern
	if !isRegexp {
		expression = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	}
	re, err := regexp.Compile("^(?:" + expression + ")$")
	return func(name string) bool { return err == nil && re.MatchString(name) }
}

// target is what a command instruments. Each call of the program is compared with it.
type target struct {
	class, method     string
	isRegexp          bool
	isClass, isMethod func(name string) bool
}

func newTarget(class, method string, isRegexp bool) target {
	return target{class: class, method: method, isRegexp: isRegexp, isClass: matcher(class, isRegexp), isMethod: matcher(method, isRegexp)}
}

func (t target) matches(c Call) bool { return t.isClass(c.Class) && t.isMethod(c.Method) }

// enhance instruments the methods of a target, and returns their number.
func (p *program) enhance(t target) (classes, methods int) {
	for _, c := range p.matching(t.class, t.isRegexp) {
		classes++
		n := 0
		for _, method := range c.methods {
			if t.isMethod(method) {
				n++
			}
		}
		if methods += n; n > 0 {
			c.registered, c.instrumented = true, true
		}
	}
	return classes, methods
}

// reset restores classes, except those of running jobs: these stay instrumented, and no later reset knows them.
func (p *program) reset(pattern string, isRegexp bool, running []target) (classes int) {
	for _, c := range p.matching(pattern, isRegexp) {
		if !c.registered {
			continue
		}
		classes++
		c.registered = false
		p.truth.Resets++
		c.instrumented = slices.ContainsFunc(running, func(t target) bool { return t.class != "" && t.isClass(c.name) })
	}
	return classes
}

// made counts a call of the program, with those that it makes.
func (p *program) made(c Call) {
	of := Count{Calls: 1, Time: c.Cost}
	if c.Throws != "" {
		of.Failed = 1
	}
	p.truth.Made.add(c.Class, c.Method, of)
	for _, child := range c.Children {
		p.made(child)
	}
}

// snapshot returns the truth of a life. The caller holds the server's lock.
func (p *program) snapshot() Truth {
	t := p.truth
	t.Made, t.Reported = maps.Clone(t.Made), maps.Clone(t.Reported)
	t.Profiling = p.profiler.running
	for _, c := range p.classes {
		if c.instrumented {
			t.Enhanced++
		}
	}
	return t
}
