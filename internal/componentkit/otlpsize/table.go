// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpsize

// Message is a type of message.
type Message uint8

// Requests are the messages that a walk begins with.
const (
	Traces Message = iota
	Logs
	Metrics
	Profiles

	resourceSpans
	scopeSpans
	span
	event
	spanLink
	status
	resourceLogs
	scopeLogs
	logRecord
	resourceMetrics
	scopeMetrics
	metric
	numbers // Gauge, Sum
	histogram
	exponentialHistogram
	summary
	numberPoint
	histogramPoint
	exponentialPoint
	buckets
	summaryPoint
	exemplar
	resourceProfiles
	scopeProfiles
	profile
	sample
	dictionary
	mapping
	location
	stack
	attributeOfDictionary // KeyValueAndUnit
	resource
	entityRef
	scope
	keyValue
	anyValue
	arrayValue
	keyValueList
	// leaf has no field that needs memory of its own.
	leaf

	messages
)

// content is the kind of a field's content.
type content uint8

const (
	// inPlace is a number in its message, or a field that decoders skip.
	inPlace content = iota
	// message is a message of type child, text a string or bytes, allocated a number that has
	// its own memory, varints and fixed repeated numbers.
	message
	text
	allocated
	varints
	fixed
)

// field is a field of a message.
type field struct {
	content content
	child   Message
	// counts: each is an element of the request.
	counts bool
	// cost is the memory of one, in bytes, without its content.
	cost uint16
}

const (
	// mostFields is the highest number of a field that needs memory, except deprecated ones.
	mostFields = 16
	// deprecated is the field of each resource that older versions of OTLP had their scopes in.
	// It has place 0 in the table, which is free.
	deprecated = 1000
)

// Slices have room to grow, up to twice their length. A slice of pointers costs pointer for
// each element. Elements of other slices cost 1.6 times their size.
const (
	pointer      = 12
	ofKeyValues  = 64
	ofAnyValues  = 26
	ofExemplars  = 115
	ofTexts      = 26
	ofWords      = 13
	ofHalfWords  = 7
	ofWholeWords = 8 // of a slice that is allocated with its final size
	// oneOf is a number that a field of several types points to. listOrMap is such a field
	// with an ArrayValue or a KeyValueList.
	oneOf     = 8
	textOneOf = 16
	byteOneOf = 24
	listOrMap = 32
)

func embedded(child Message) field { return field{content: message, child: child} }

func one(child Message, cost uint16) field { return field{content: message, child: child, cost: cost} }

func repeated(child Message, size uint16) field { return one(child, size+pointer) }

func element(child Message, size uint16) field {
	return field{content: message, child: child, cost: size + pointer, counts: true}
}

// Fields that several messages have.
var (
	aText         = field{content: text}
	attributes    = one(keyValue, ofKeyValues)
	exemplars     = one(exemplar, ofExemplars)
	anAllocated   = field{content: allocated, cost: oneOf}
	someHalfWords = field{content: varints, cost: ofHalfWords}
)

// table has the fields that need memory, by message and number.
var table = [messages][mostFields + 1]field{
	Traces:   {1: repeated(resourceSpans, 128)},
	Logs:     {1: repeated(resourceLogs, 128)},
	Metrics:  {1: repeated(resourceMetrics, 128)},
	Profiles: {1: repeated(resourceProfiles, 96), 2: embedded(dictionary)},

	resourceSpans: {0: repeated(scopeSpans, 112), 1: embedded(resource), 2: repeated(scopeSpans, 112), 3: aText},
	scopeSpans:    {1: embedded(scope), 2: element(span, 208), 3: aText},
	span:          {3: aText, 5: aText, 9: attributes, 11: repeated(event, 64), 13: repeated(spanLink, 80), 15: embedded(status)},
	event:         {2: aText, 3: attributes},
	spanLink:      {3: aText, 4: attributes},
	status:        {2: aText},

	resourceLogs: {0: repeated(scopeLogs, 112), 1: embedded(resource), 2: repeated(scopeLogs, 112), 3: aText},
	scopeLogs:    {1: embedded(scope), 2: element(logRecord, 128), 3: aText},
	logRecord:    {3: aText, 5: embedded(anyValue), 6: attributes, 12: aText},

	resourceMetrics: {0: repeated(scopeMetrics, 112), 1: embedded(resource), 2: repeated(scopeMetrics, 112), 3: aText},
	scopeMetrics:    {1: embedded(scope), 2: repeated(metric, 96), 3: aText},
	metric: {
		1: aText, 2: aText, 3: aText, 12: attributes,
		5: one(numbers, 32), 7: one(numbers, 40), 9: one(histogram, 40), 10: one(exponentialHistogram, 40), 11: one(summary, 32),
	},
	numbers:              {1: element(numberPoint, 96)},
	histogram:            {1: element(histogramPoint, 160)},
	exponentialHistogram: {1: element(exponentialPoint, 192)},
	summary:              {1: element(summaryPoint, 96)},
	numberPoint:          {4: anAllocated, 5: exemplars, 6: anAllocated, 7: attributes},
	histogramPoint:       {6: {content: fixed, cost: ofWholeWords}, 7: {content: fixed, cost: ofWholeWords}, 8: exemplars, 9: attributes},
	exponentialPoint:     {1: attributes, 8: embedded(buckets), 9: embedded(buckets), 11: exemplars},
	buckets:              {2: {content: varints, cost: ofWords}},
	summaryPoint:         {6: repeated(leaf, 16), 7: attributes},
	exemplar:             {3: anAllocated, 6: anAllocated, 7: attributes},

	resourceProfiles: {1: embedded(resource), 2: repeated(scopeProfiles, 112), 3: aText},
	scopeProfiles:    {1: embedded(scope), 2: repeated(profile, 160), 3: aText},
	profile:          {1: embedded(leaf), 2: element(sample, 80), 5: embedded(leaf), 9: aText, 10: aText, 11: someHalfWords},
	sample:           {2: someHalfWords, 4: {content: varints, cost: ofWords}, 5: {content: fixed, cost: ofWholeWords}},
	dictionary: {
		1: repeated(mapping, 64), 2: repeated(location, 64), 3: repeated(leaf, 24), 4: repeated(leaf, 24),
		5: {content: text, cost: ofTexts}, 6: repeated(attributeOfDictionary, 24), 7: repeated(stack, 24),
	},
	mapping:               {5: someHalfWords},
	location:              {3: repeated(leaf, 24), 4: someHalfWords},
	stack:                 {1: someHalfWords},
	attributeOfDictionary: {2: embedded(anyValue)},

	resource:  {1: attributes, 3: repeated(entityRef, 80)},
	entityRef: {1: aText, 2: aText, 3: {content: text, cost: ofTexts}, 4: {content: text, cost: ofTexts}},
	scope:     {1: aText, 2: aText, 3: attributes},
	keyValue:  {1: aText, 2: embedded(anyValue)},
	anyValue: {
		1: {content: text, cost: textOneOf}, 2: anAllocated, 3: anAllocated, 4: anAllocated, 8: anAllocated,
		5: one(arrayValue, listOrMap), 6: one(keyValueList, listOrMap), 7: {content: text, cost: byteOneOf},
	},
	arrayValue:   {1: one(anyValue, ofAnyValues)},
	keyValueList: {1: one(keyValue, ofKeyValues)},
}
