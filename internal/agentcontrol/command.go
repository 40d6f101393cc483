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

// Command is something that agents of a kind can be told.
type Command struct {
	Name string
	// Summary says in a sentence what it does.
	Summary string
	// Disruptive says that it stops or pauses the traced program, or may, whatever its
	// arguments are. Where it does for some of them alone, these say so.
	Disruptive bool
	Parameters []Parameter
}

// Parameter is what a command is about.
type Parameter struct {
	Name    string
	Summary string
	Kind    Kind
	// Required parameters have to be there. Others have no value where they are left out.
	Required bool
	// OneOf are the texts that there are; empty: any.
	OneOf []string
	// Least and Most bound a number.
	Least, Most int64
	// MaxBytes bounds a text; 0: it is DefaultMaxBytes.
	MaxBytes int
	// DisruptiveIf is for which of its values the command is disruptive; nil: for none.
	DisruptiveIf *Condition
}

// Condition is one that values of a parameter meet, or don't.
type Condition struct {
	// Text says it for a person, of a value: "it is true".
	Text string
	// Holds reports whether a value that was checked meets it.
	Holds func(value string) bool
}

// DefaultMaxBytes is how long a text may be whose parameter doesn't say.
const DefaultMaxBytes = 1024

// Kind is what values a parameter has.
type Kind string

// The kinds of values.
const (
	Text    Kind = "text"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
)

// Arguments are the values of a command's parameters, which were checked.
type Arguments struct{ values map[string]string }

// Text is the value of a parameter; empty: it was left out.
func (a Arguments) Text(name string) string { return a.values[name] }

// Integer is the value of a parameter that is one; ok is false where it was left out.
func (a Arguments) Integer(name string) (value int64, ok bool) {
	value, err := strconv.ParseInt(a.values[name], 10, 64)
	return value, err == nil
}

// Boolean is the value of a parameter that is one; false where it was left out.
func (a Arguments) Boolean(name string) bool { return a.values[name] == "true" }

// String is what a person would write: name=value, by names.
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

// Parse checks arguments, as they were written, against the parameters. Empty ones are
// those that were left out. The error is an *Error.
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

// Disruption is what of the command, with arguments that were checked, stops or pauses the
// traced program, or may: its name, or also an argument. Empty: nothing does.
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

// check says what is wrong with a value.
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
