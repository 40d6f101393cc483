// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"fmt"
	"slices"
)

// Domain is the logging library of an agent. Each process has an agent for each library.
type Domain uint32

// The domains, with their numbers in a registration.
const (
	JUL    Domain = 3 // java.util.logging
	Log4j  Domain = 4 // Apache log4j 1
	Python Domain = 5 // Python's logging
	Log4j2 Domain = 6 // Apache log4j 2
)

// domainNames has the name of each domain in configurations.
var domainNames = []string{JUL: "jul", Log4j: "log4j", Python: "python", Log4j2: "log4j2"}

// Domains returns all domains in order of their numbers.
func Domains() []Domain { return []Domain{JUL, Log4j, Python, Log4j2} }

// Valid reports whether the protocol has this domain.
func (d Domain) Valid() bool { return d >= JUL && d <= Log4j2 }

func (d Domain) String() string {
	if !d.Valid() {
		return fmt.Sprintf("domain %d", uint32(d))
	}
	return domainNames[d]
}

// ParseDomain returns the domain of a name: jul, log4j, log4j2 or python.
func ParseDomain(name string) (Domain, error) {
	if d := Domain(max(0, slices.Index(domainNames, name))); d.Valid() {
		return d, nil
	}
	return 0, fmt.Errorf("expected jul, log4j, log4j2 or python, got %q", name)
}
