// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/greys"
)

// other is a method, and its class, that is there beside those of the program.
type other struct {
	class, method string
	kinds         []string
}

// others are the interface and the lambda of a class.
func (l *life) others(class int) []other {
	if !l.options.Lambdas {
		return nil
	}
	name := className(class)
	return []other{
		{class: name + "$Step", method: "run", kinds: []string{"interface", "member-class"}},
		{class: fmt.Sprintf("%s$$Lambda$%d/0x00007fe58c08%04x", name, 14+class, class), method: "run", kinds: []string{"synthetic"}},
	}
}

// errFailed says that a command failed, of which the released server says only that.
var errFailed = errors.New("command execution failed")

// fails is what becomes of a command where its target matches what the released server fails
// on: a lambda, whose interface is enough; a constructor, after which all commands on its class
// fail until a reset.
func (l *life) fails(target greys.Target) error {
	classes, err := matcher(target.Class, target.Regexp)
	if err != nil {
		return err
	}
	methods, err := matcher(target.Method, target.Regexp)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var failed error
	for class := range l.options.Classes {
		for _, of := range l.others(class) {
			if classes.MatchString(of.class) && methods.MatchString(of.method) {
				failed = errFailed
			}
		}
		if !l.options.Lambdas || !classes.MatchString(className(class)) {
			continue
		}
		l.poisoned[class] = l.poisoned[class] || methods.MatchString("<init>")
		if l.poisoned[class] {
			failed = errFailed
		}
	}
	return failed
}
