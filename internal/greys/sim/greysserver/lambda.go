// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// other is a method and class beside the regular ones of the program.
type other struct {
	class, method string
	kinds         []string
}

// others returns the interface and the lambda of a class.
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

// errFailed is a failure that the released server reports without a cause.
var errFailed = errors.New("command execution failed")

// fails returns the error for a target that the released server cannot instrument. A lambda fails; its interface in the
// target is enough. A constructor fails too: after it all commands on its class fail until a reset.
func (l *life) fails(target javamethods.Target) error {
	classes, methods, err := matchers(target)
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
