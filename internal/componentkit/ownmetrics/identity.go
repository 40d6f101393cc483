// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ownmetrics

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxKnown bounds the sets of attributes with stored options. Attributes of a component's own metrics have few values.
// The options of further sets are made for each point.
const maxKnown = 1_000

// identity is the attribute that all points of a component have.
type identity struct {
	attribute attribute.KeyValue
	// alone are the options of points that have no other attribute.
	alone *pointOptions

	// known has the options of earlier sets of attributes. The map is replaced and never changed, so readers need no
	// lock. growing is held to replace it.
	known   atomic.Pointer[map[attribute.Distinct]*pointOptions]
	growing sync.Mutex
}

// pointOptions are the options of a point, for each kind of instrument.
type pointOptions struct {
	add     []metric.AddOption
	record  []metric.RecordOption
	observe []metric.ObserveOption
}

func newIdentity(of attribute.KeyValue) *identity {
	i := &identity{attribute: of, alone: newPointOptions(attribute.NewSet(of))}
	i.known.Store(&map[attribute.Distinct]*pointOptions{})
	return i
}

func newPointOptions(set attribute.Set) *pointOptions {
	option := metric.WithAttributeSet(set)
	return &pointOptions{[]metric.AddOption{option}, []metric.RecordOption{option}, []metric.ObserveOption{option}}
}

func (i *identity) add(options []metric.AddOption) []metric.AddOption {
	if len(options) == 0 {
		return i.alone.add
	}
	return i.with(metric.NewAddConfig(options).Attributes()).add
}

func (i *identity) record(options []metric.RecordOption) []metric.RecordOption {
	if len(options) == 0 {
		return i.alone.record
	}
	return i.with(metric.NewRecordConfig(options).Attributes()).record
}

func (i *identity) observe(options []metric.ObserveOption) []metric.ObserveOption {
	if len(options) == 0 {
		return i.alone.observe
	}
	return i.with(metric.NewObserveConfig(options).Attributes()).observe
}

// with returns the options of a set of attributes and the identity. It allocates nothing for a known set.
func (i *identity) with(set attribute.Set) *pointOptions {
	if set.Len() == 0 {
		return i.alone
	}
	if known, ok := (*i.known.Load())[set.Equivalent()]; ok {
		return known
	}
	return i.learn(set)
}

func (i *identity) learn(set attribute.Set) *pointOptions {
	options := newPointOptions(attribute.NewSet(append(set.ToSlice(), i.attribute)...))
	i.growing.Lock()
	defer i.growing.Unlock()
	if known := *i.known.Load(); len(known) < maxKnown {
		grown := maps.Clone(known)
		grown[set.Equivalent()] = options
		i.known.Store(&grown)
	}
	return options
}
