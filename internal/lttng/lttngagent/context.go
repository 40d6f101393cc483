// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

// Context is a value of the application that is recorded with each record, named "$app.provider:name" in LTTng. The
// zero value cannot be sent.
type Context struct{ provider, name string }

// MaxContextName bounds each part of a context's name, in bytes. The protocol has no bound.
const MaxContextName = 255

// NewContext returns the context with a provider and a name. Neither may be empty. Both must be UTF-8 without NUL,
// and without blanks or control characters at their ends.
func NewContext(provider, name string) (Context, error) {
	if provider == "" || name == "" {
		return Context{}, &ValueError{"a provider and a name of a context", "none"}
	}
	if err := checkText("the provider of a context", provider, MaxContextName); err != nil {
		return Context{}, err
	}
	if err := checkText("the name of a context", name, MaxContextName); err != nil {
		return Context{}, err
	}
	return Context{provider, name}, nil
}

// Provider returns the provider of the value.
func (c Context) Provider() string { return c.provider }

// Name returns the name of the value.
func (c Context) Name() string { return c.name }

func (c Context) String() string { return c.provider + ":" + c.name }
