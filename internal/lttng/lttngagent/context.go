// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

// Context is a value of the application that is recorded with each record, of which
// LTTng says "$app.provider:name". The zero value cannot be sent.
type Context struct{ provider, name string }

// MaxContextName bounds the parts of a context's name, in bytes each. It is ours: the
// protocol has none.
const MaxContextName = 255

// NewContext returns the context of a name and of who provides it: neither is empty,
// both are UTF-8 without a NUL, and without blanks or control characters at their ends.
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

// Provider says who provides the value.
func (c Context) Provider() string { return c.provider }

// Name is the value's name.
func (c Context) Name() string { return c.name }

func (c Context) String() string { return c.provider + ":" + c.name }
