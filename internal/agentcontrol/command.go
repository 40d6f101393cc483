// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrol

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Command is a command of a kind of agents.
type Command struct {
	Name string
	// Summary describes its effect in a sentence.
	Summary string
	// Disruptive: it stops or pauses the traced program, or may do so, for all arguments. If only
	// some arguments do, their parameters describe which.
	Disruptive bool
	Parameters []Parameter
}

// Parameter is a parameter of a command.
type Parameter struct {
	Name    string
	Summary string
	Kind    Kind
	// Required parameters must have a value. Others have none if they are omitted.
	Required bool
	// OneOf are the texts that there are; empty: any.
	OneOf []string
	// Least and Most bound a number.
	Least, Most int64
	// MaxBytes bounds a text; 0: it is DefaultMaxBytes.
	MaxBytes int
	// DisruptiveIf is the condition of values for which the command is disruptive; nil: none.
	DisruptiveIf *Condition
}

// Condition is a condition on the values of a parameter.
type Condition struct {
	// Text describes a value that meets it, for a person: "it is true".
	Text string
	// Holds reports whether a checked value meets it.
	Holds func(value string) bool
}

// DefaultMaxBytes bounds texts of parameters without MaxBytes.
const DefaultMaxBytes = 1024

// Kind is the type of a parameter's values.
type Kind string

// The kinds of values.
const (
	Text    Kind = "text"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
)

// Arguments are the values of a command's parameters, which were checked.
type Arguments struct{ values map[string]string }

// Text returns the value of a parameter; empty: it was omitted.
func (a Arguments) Text(name string) string { return a.values[name] }

// Integer returns the value of an integer parameter; ok is false if it was omitted.
func (a Arguments) Integer(name string) (value int64, ok bool) {
	value, err := strconv.ParseInt(a.values[name], 10, 64)
	return value, err == nil
}

// Boolean returns the value of a boolean parameter; false if it was omitted.
func (a Arguments) Boolean(name string) bool { return a.values[name] == "true" }

// String returns the arguments as a person writes them: name=value, sorted by name.
func (a Arguments) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(a.values)) {
		words = append(words, name+"="+a.values[name])
	}
	return strings.Join(words, " ")
}

// Find is the command with a name. The error is an *Error.
func Find(commands []Command, name string) (*Command, error) {
	for i := range commands {
		if commands[i].Name == name {
			return &commands[i], nil
		}
	}
	if len(commands) == 0 {
		return nil, Errorf(UnknownCommand, "the agent has no commands")
	}
	names := make([]string, len(commands))
	for i := range commands {
		names[i] = commands[i].Name
	}
	return nil, Errorf(UnknownCommand, "expected %s, got %.100q", strings.Join(names, " or "), name)
}

// Parse checks the texts of arguments against the parameters. Empty ones are omitted ones. The
// error is an *Error.
func (c *Command) Parse(written map[string]string) (Arguments, error) {
	values := map[string]string{}
	for i := range c.Parameters {
		p := &c.Parameters[i]
		value := written[p.Name]
		if value == "" && p.Required {
			return Arguments{}, Errorf(BadArgument, "%s needs the argument %s", c.Name, p.Name)
		}
		if value == "" {
			continue
		}
		if err := p.check(value); err != nil {
			return Arguments{}, Errorf(BadArgument, "argument %s: %w", p.Name, err)
		}
		values[p.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if !slices.ContainsFunc(c.Parameters, func(p Parameter) bool { return p.Name == name }) {
			return Arguments{}, Errorf(BadArgument, "%s has no argument %.100q", c.Name, name)
		}
	}
	return Arguments{values: values}, nil
}

// Disruption returns the part of the command, with checked arguments, that stops or pauses the
// traced program, or may do so: its name, or also an argument. Empty: none.
func (c *Command) Disruption(with Arguments) string {
	if c.Disruptive {
		return c.Name
	}
	for i := range c.Parameters {
		p := &c.Parameters[i]
		if value := with.Text(p.Name); value != "" && p.DisruptiveIf != nil && p.DisruptiveIf.Holds(value) {
			return fmt.Sprintf("%s with %s=%.100s", c.Name, p.Name, value)
		}
	}
	return ""
}

// check returns an error for an invalid value.
func (p *Parameter) check(value string) error {
	switch p.Kind {
	case Integer:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < p.Least || n > p.Most {
			return fmt.Errorf("expected a number from %d to %d, got %.100q", p.Least, p.Most, value)
		}
		return nil
	case Boolean:
		if value != "true" && value != "false" {
			return fmt.Errorf("expected true or false, got %.100q", value)
		}
		return nil
	}
	most := p.MaxBytes
	if most == 0 {
		most = DefaultMaxBytes
	}
	switch {
	case len(value) > most:
		return fmt.Errorf("expected at most %d bytes, got %d", most, len(value))
	case !utf8.ValidString(value):
		return fmt.Errorf("expected UTF-8, got %.100q", value)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("expected a text without NUL, got %.100q", value)
	case len(p.OneOf) > 0 && !slices.Contains(p.OneOf, value):
		return fmt.Errorf("expected %s, got %.100q", strings.Join(p.OneOf, " or "), value)
	}
	return nil
}
