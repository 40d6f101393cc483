// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// plan has the commands for agents that register, by domain: first loggers, then contexts.
type plan map[lttngagent.Domain][]lttngagent.Command

// newPlan returns the plan of a configuration. The error names each wrong field of enable
// and contexts.
func newPlan(c *Config) (plan, error) {
	p := plan{}
	var wrong []error
	for i := range c.Enable {
		if err := p.addEnable(&c.Enable[i], c.dialect()); err != nil {
			wrong = append(wrong, fmt.Errorf("enable[%d].%w", i, err))
		}
	}
	for i := range c.Contexts {
		if err := p.addContext(&c.Contexts[i], c.dialect()); err != nil {
			wrong = append(wrong, fmt.Errorf("contexts[%d].%w", i, err))
		}
	}
	return p, errors.Join(wrong...)
}

// add adds a command for the agents of a domain, if they support it.
func (p plan) add(to lttngagent.Agent, command lttngagent.Command) error {
	if err := to.Supports(command); err != nil {
		return err
	}
	p[to.Domain] = append(p[to.Domain], command)
	return nil
}

func (p plan) addEnable(r *EnableRule, dialect lttngagent.Dialect) error {
	domain, err := parseDomain(r.Domain, dialect)
	if err != nil {
		return fmt.Errorf("domain is %q: %w", r.Domain, err)
	}
	if r.Logger == "" {
		return errors.New("logger is empty: set it to a name, or to * for all")
	}
	logger, err := lttngagent.ParsePattern(r.Logger)
	if err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	levels, err := r.levels(domain)
	if err != nil {
		return err
	}
	filter, err := lttngagent.ParseFilter(r.Filter)
	if err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	command := lttngagent.Enable{Logger: logger, Levels: levels, Filter: filter}
	if err := p.add(lttngagent.Agent{Dialect: dialect, Domain: domain}, command); err != nil {
		return fmt.Errorf("logger is %q: %w: leave out level and filter", r.Logger, err)
	}
	return nil
}

// levels returns the levels of a rule.
func (r *EnableRule) levels(domain lttngagent.Domain) (lttngagent.Levels, error) {
	kind, err := r.levelType()
	if err != nil {
		return lttngagent.Levels{}, err
	}
	if kind == lttngagent.AllLevels {
		return lttngagent.Levels{}, nil
	}
	level, err := domain.ParseLevel(fmt.Sprint(r.Level))
	if err != nil {
		return lttngagent.Levels{}, fmt.Errorf("level: %w", err)
	}
	return lttngagent.NewLevels(kind, level)
}

// levelType returns the type of a rule's level. Without a level it is AllLevels.
func (r *EnableRule) levelType() (lttngagent.LevelType, error) {
	kind := lttngagent.AllLevels
	if r.Level != nil {
		kind = lttngagent.LevelRange
	}
	if r.LevelType != "" {
		var err error
		if kind, err = lttngagent.ParseLevelType(r.LevelType); err != nil {
			return 0, fmt.Errorf("level_type: %w", err)
		}
	}
	switch r.Level.(type) {
	case nil, string, int:
	default:
		return 0, fmt.Errorf("level is %v: set it to the name or the number of a level", r.Level)
	}
	if kind == lttngagent.AllLevels && r.Level != nil {
		return 0, fmt.Errorf("level_type is %q: leave level out, or set it to range or single", r.LevelType)
	}
	if kind != lttngagent.AllLevels && r.Level == nil {
		return 0, fmt.Errorf("level_type is %q: set level, too", r.LevelType)
	}
	return kind, nil
}

// contextDomains are the domains with contexts.
var contextDomains = []lttngagent.Domain{lttngagent.JUL, lttngagent.Log4j, lttngagent.Log4j2}

func (p plan) addContext(r *ContextRule, dialect lttngagent.Dialect) error {
	domains := contextDomains
	if r.Domain != "" {
		domain, err := parseDomain(r.Domain, dialect)
		if err != nil {
			return fmt.Errorf("domain is %q: %w", r.Domain, err)
		}
		domains = []lttngagent.Domain{domain}
	}
	context, err := lttngagent.NewContext(r.Provider, r.Name)
	if err != nil {
		return fmt.Errorf("provider and name: %w", err)
	}
	for _, domain := range domains {
		if err := p.add(lttngagent.Agent{Dialect: dialect, Domain: domain}, lttngagent.EnableContext{Context: context}); err != nil {
			return fmt.Errorf("domain is %q: %w: leave the context out", r.Domain, err)
		}
	}
	return nil
}

// parseDomain returns the domain with a name, if agents of the dialect can have it.
func parseDomain(name string, dialect lttngagent.Dialect) (lttngagent.Domain, error) {
	domains := lttngagent.Domains()
	if dialect == lttngagent.RFC {
		domains = []lttngagent.Domain{lttngagent.JUL}
	}
	names := make([]string, len(domains))
	for i, d := range domains {
		if names[i] = d.String(); names[i] == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("set it to %s", strings.Join(names, " or "))
}
