// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Rules are call rules, prepared for classes of events.
type Rules []rule

type rule struct {
	*CallRule
	index int
	name  []namePart
}

// NewRules returns the rules, which must have passed ValidateCallRules.
func NewRules(settings []CallRule) Rules {
	rules := make(Rules, len(settings))
	for i := range settings {
		r := rule{CallRule: &settings[i], index: i}
		switch {
		case r.NameField != "":
			r.name = []namePart{{field: r.NameField}}
		case r.Name != "":
			r.name, _ = parseName(r.Name, true)
		default:
			r.name = []namePart{{field: anyText}}
		}
		rules[i] = r
	}
	return rules
}

// Has reports whether a rule has events of a name.
func (rules Rules) Has(event string) bool {
	for i := range rules {
		for _, of := range [...]*RuleEvent{&rules[i].Entry, &rules[i].Exit} {
			if _, ok := of.match(event); ok {
				return true
			}
		}
	}
	return false
}

// match reports whether the rule's event has a name, and returns the text for its *.
func (e *RuleEvent) match(name string) (text string, ok bool) {
	before, after, any := strings.Cut(e.Event, anyText)
	if !any {
		return "", name == e.Event
	}
	rest, ok := strings.CutPrefix(name, before)
	if !ok || len(rest) < len(after) {
		return "", false
	}
	return strings.CutSuffix(rest, after)
}

// Parts returns the ends of calls that events of a class are, in the order of Plan.Rules.
func (rules Rules) Parts(class *ctf.EventClass) (parts []RulePart) {
	for i := len(rules) - 1; i >= 0; i-- {
		if text, ok := rules[i].Exit.match(class.Name); ok {
			parts = append(parts, rules[i].part(class, &rules[i].Exit, callevent.KindExit, text))
		}
	}
	for i := range rules {
		if text, ok := rules[i].Entry.match(class.Name); ok {
			kind := callevent.KindEnter
			if rules[i].Outermost || rules[i].KeyIsThread {
				kind = callevent.KindEnterOutermost
			}
			parts = append(parts, rules[i].part(class, &rules[i].Entry, kind, text))
		}
	}
	return parts
}

// RulePart is one end of the calls of a rule: its entries or its exits, as events of one class.
type RulePart struct {
	// Rule is the index of the rule in the setting.
	Rule int
	// Kind is the kind of call event.
	Kind callevent.Kind
	Lane Lane
	// KeyIsThread is that of the rule, UnlessRunning that of the rule's event.
	KeyIsThread, UnlessRunning bool
	// Lack is the reason why the events cannot be paired. It is nil if they can.
	Lack *LackError

	event *RuleEvent
	// nameless is the name of a function whose event has an empty name.
	nameless string
	// keys are the fields of the key. cpu is the number of the CPU.
	keys []scalar
	cpu  Number
	name []compiledPart
	// conditions are those of only and except.
	conditions []condition
	attributes []ruleAttribute
	failure    *ctf.Field
}

// compiledPart is a part of a function's name: a text, or the value of a field.
type compiledPart struct {
	text  string
	field scalar
}

// condition are values of which a field must have one, or must have none.
type condition struct {
	field  scalar
	values []string
	must   bool
}

// ruleAttribute is a field that becomes an attribute of a span.
type ruleAttribute struct {
	key   string
	field scalar
}

// LackError: a rule needs a field that an event does not have.
type LackError struct {
	Rule    int
	Event   string
	Setting string
	Field   string
	// Fields are the fields that the event has.
	Fields []string
}

func (e *LackError) Error() string {
	return fmt.Sprintf("call_rules[%d]: expected the field %q (%s) in events %s, got only %s",
		e.Rule, e.Field, e.Setting, e.Event, strings.Join(e.Fields, ", "))
}

// AttributePrefix begins the names of attributes that fields of a rule's events become.
const AttributePrefix = "lttng."

const (
	// maxRuleText bounds a text in an attribute of a rule, in bytes, so that all attributes of an event fit into a batch.
	maxRuleText = 1 << 10
	// maxAttributeName bounds the name of a field that becomes an attribute of a rule.
	maxAttributeName = 256
	// maxErrno is the largest error number that Linux returns.
	maxErrno = 4095
)

// part returns the end of the rule's calls that events of a class are. text is that for the * of their name.
func (r *rule) part(class *ctf.EventClass, event *RuleEvent, kind callevent.Kind, text string) RulePart {
	p := RulePart{
		Rule: r.index, Kind: kind, Lane: r.lane(), KeyIsThread: r.KeyIsThread, UnlessRunning: event.UnlessRunning,
		event: event, nameless: r.Entry.Event,
		cpu: numberAt(class, metadata.PacketContext, attributeCPU),
	}
	lack := func(setting, field string) {
		if p.Lack == nil {
			p.Lack = &LackError{Rule: r.index, Event: class.Name, Setting: setting, Field: field, Fields: fieldsOf(class)}
		}
	}
	if p.Lane == LaneCPU && !p.cpu.exists() {
		lack("lane: cpu", attributeCPU)
	}
	for _, path := range r.keysOf(event) {
		key := scalarAt(class, path)
		if key.field == nil || p.hasThreadKey() && key.field.Kind == ctf.Text {
			lack("key_field", path)
		}
		p.keys = append(p.keys, key)
	}
	for _, part := range r.name {
		compiled := compiledPart{text: part.text}
		switch {
		case part.field == anyText && strings.Contains(event.Event, anyText):
			compiled.text = text
		case part.field != "" && r.isOneEvent() && kind == callevent.KindExit:
			// The field has the name of the call that the same event enters.
		case part.field != "":
			if compiled.field = scalarAt(class, part.field); compiled.field.field == nil {
				// Calls of several rules share the stack, so an exit has to name its call.
				if p.Lane == LaneCPU && len(p.keys) == 0 {
					lack("name", part.field)
				}
				compiled.text = ""
			}
		}
		p.name = append(p.name, compiled)
	}
	p.compileConditions(class, lack)
	if kind != callevent.KindExit || !r.isOneEvent() {
		// Otherwise the fields have values of the call that the same event enters.
		p.compileAttributes(class, r.Attributes)
	}
	if kind == callevent.KindExit && r.ErrorField != "" {
		if f := scalarAt(class, r.ErrorField); f.field != nil && !f.inPacket && f.field.Kind != ctf.Text {
			p.failure = f.field
		}
	}
	return p
}

// hasThreadKey reports whether the key is the number of a thread.
func (p *RulePart) hasThreadKey() bool {
	return p.Lane == LaneThread || p.KeyIsThread || p.UnlessRunning
}

// compileConditions sets the conditions of the event, in the order of their fields.
func (p *RulePart) compileConditions(class *ctf.EventClass, lack func(setting, field string)) {
	for _, of := range [...]struct {
		setting string
		values  map[string]any
		must    bool
	}{{"only", p.event.Only, true}, {"except", p.event.Except, false}} {
		for path, value := range of.values {
			c := condition{field: scalarAt(class, path), must: of.must}
			c.values, _ = valuesOf(value)
			if c.field.field == nil {
				lack(of.setting, path)
			}
			p.conditions = append(p.conditions, c)
		}
	}
}

// compileAttributes sets the attributes of fields that the class has.
func (p *RulePart) compileAttributes(class *ctf.EventClass, names []string) {
	if slices.Contains(names, anyText) {
		names = nil
		if class.Fields != nil && class.Fields.Kind == ctf.Struct {
			described := descriptions(class.Fields)
			for _, f := range class.Fields.Members {
				if !described[f] {
					names = append(names, f.Name)
				}
			}
		}
	}
	for _, name := range names {
		f := scalarAt(class, name)
		if f.field == nil || len(name) > maxAttributeName || len(p.attributes) == callevent.MaxEventAttributes {
			continue
		}
		field, _ := cutForm(name)
		key := AttributePrefix + field
		if !slices.ContainsFunc(p.attributes, func(a ruleAttribute) bool { return a.key == key }) {
			p.attributes = append(p.attributes, ruleAttribute{key, f})
		}
	}
}

// fieldsOf returns the names of the fields of a class that rules can use.
func fieldsOf(class *ctf.EventClass) (names []string) {
	const most = 40
	for _, scope := range [...]metadata.Scope{metadata.EventFields, metadata.EventContext, metadata.EventCommonContext, metadata.PacketContext} {
		root := class.Scope(scope)
		if root == nil || root.Kind != ctf.Struct {
			continue
		}
		for _, f := range root.Members {
			if len(names) == most {
				return append(names, "…")
			}
			names = append(names, ValidString(Prefix([]byte(f.Name), maxAttributeName)))
		}
	}
	return names
}

// Detail is a field that a rule names in a setting, and that it does not need to pair events.
type Detail struct{ Setting, Field string }

// Details returns the fields in attributes and error_field of a rule.
func (rules Rules) Details(rule int) (details []Detail) {
	for _, name := range rules[rule].Attributes {
		if name != anyText {
			details = append(details, Detail{"attributes", name})
		}
	}
	if name := rules[rule].ErrorField; name != "" {
		details = append(details, Detail{settingErrorField, name})
	}
	return details
}

// HasDetail reports whether events of the class have a field of Details.
func (p *RulePart) HasDetail(class *ctf.EventClass, d Detail) bool {
	if d.Setting == settingErrorField {
		return p.failure != nil
	}
	return scalarAt(class, d.Field).field != nil
}

const settingErrorField = "error_field"

// Selects reports whether the event has the values of only and except. It uses scratch.
func (p *RulePart) Selects(scratch []byte, e *ctf.Event, packet *ctf.Packet) bool {
	for i := range p.conditions {
		c := &p.conditions[i]
		text, ok := c.field.appendTo(scratch[:0], e, packet)
		has := false
		for _, value := range c.values {
			has = has || ok && string(text) == value
		}
		if has != c.must {
			return false
		}
	}
	return true
}

// IsExit reports whether the events end calls.
func (p *RulePart) IsExit() bool { return p.Kind == callevent.KindExit }

// HasDetails reports whether the events may have attributes or an error.
func (p *RulePart) HasDetails() bool { return len(p.attributes) > 0 || p.failure != nil }

// HasKey reports whether the events have a key.
func (p *RulePart) HasKey() bool { return len(p.keys) > 0 }

// Key has the values of the fields of a key, separated by commas.
type Key struct {
	Text []byte
	// commas is a hash of the places of the separators, because values may have commas, too. It is 0 without a separator.
	commas laneHash
}

// Key returns the key of the event, with its text in scratch. It returns false if the event lacks a value.
func (p *RulePart) Key(scratch []byte, e *ctf.Event, packet *ctf.Packet) (key Key, ok bool) {
	key.Text, ok = scratch[:0], true
	for i, field := range p.keys {
		if i > 0 {
			key.Text = append(key.Text, ',')
			key.commas = key.commas.number(uint64(len(key.Text)), 4)
		}
		if key.Text, ok = field.appendTo(key.Text, e, packet); !ok {
			return key, false
		}
	}
	return key, true
}

// Thread returns the number of the thread that is the key. It returns false if the event has none.
func (p *RulePart) Thread(e *ctf.Event, packet *ctf.Packet) (int64, bool) {
	v := p.keys[0].values(e, packet)
	if v == nil {
		return 0, false
	}
	return v.Int(p.keys[0].field), true
}

// CPU returns the number of the CPU that recorded the event.
func (p *RulePart) CPU(packet *ctf.Packet) (int64, bool) { return p.cpu.Value(&packet.Values) }

// KeyLane returns the ID of the lane of a key of the rule.
func (p *RulePart) KeyLane(key Key) uint64 {
	return newLaneHash().number(uint64(p.Rule), 2).key(key).lane()
}

// CPULane returns the ID of the lane of a CPU. Calls of rules without a key share it.
func (p *RulePart) CPULane(cpu int64, key Key) uint64 {
	h := newLaneHash().text(laneOfCPU).number(uint64(cpu), 8)
	if len(p.keys) > 0 {
		h = h.number(uint64(p.Rule), 2).key(key)
	}
	return h.lane()
}

// IdleLane returns the ID of the lane of the thread that runs on a CPU without work.
func IdleLane(cpu int64) uint64 { return newLaneHash().text(laneOfIdle).number(uint64(cpu), 8).lane() }

var laneOfCPU, laneOfIdle = []byte("cpu "), []byte("idle ")

// laneHash is the FNV-1a hash of the owner of a lane. It allocates nothing.
type laneHash uint64

func newLaneHash() laneHash { return 14695981039346656037 }

func (h laneHash) byte(b byte) laneHash { return (h ^ laneHash(b)) * 1099511628211 }

// number adds the lowest bytes of a number.
func (h laneHash) number(n uint64, bytes int) laneHash {
	for ; bytes > 0; bytes, n = bytes-1, n>>8 {
		h = h.byte(byte(n))
	}
	return h
}

func (h laneHash) text(text []byte) laneHash {
	for _, b := range text {
		h = h.byte(b)
	}
	return h
}

func (h laneHash) key(key Key) laneHash {
	h = h.text(key.Text)
	if key.commas != 0 {
		h = h.number(uint64(key.commas), 8)
	}
	return h
}

func (h laneHash) lane() uint64 { return uint64(h) | callevent.LaneKey }

// AppendFunction appends the name of the function. It returns false if the event is an exit that names no function.
func (p *RulePart) AppendFunction(dst []byte, e *ctf.Event, packet *ctf.Packet) ([]byte, bool) {
	from := len(dst)
	for i := range p.name {
		part := &p.name[i]
		if part.text != "" {
			dst = append(dst, part.text...)
			continue
		}
		var ok bool
		if dst, ok = part.field.appendTo(dst, e, packet); !ok && p.Kind == callevent.KindExit {
			return dst, false
		}
	}
	if len(dst) == from {
		dst = append(dst, p.nameless...)
	}
	return dst, true
}

// AppendAttributes appends the attributes of the event.
func (p *RulePart) AppendAttributes(dst []callevent.KeyValue, e *ctf.Event, packet *ctf.Packet, known *Texts) []callevent.KeyValue {
	for i := range p.attributes {
		a := &p.attributes[i]
		v := a.field.values(e, packet)
		if v == nil {
			continue
		}
		f := a.field.field
		value := callevent.IntValue(v.Int(f))
		switch {
		case a.field.isDevice:
			value = callevent.StringValue(string(appendDevice(nil, v, f)))
		case f.Kind == ctf.Text:
			text := v.Text(f)
			if f.Encoding().Unit() > 1 {
				text = v.AppendText(nil, f)
			}
			value = callevent.StringValue(known.text(Prefix(text, maxRuleText), Text{}))
		case f.Label(v) != "":
			value = callevent.StringValue(f.Label(v))
		case f.Kind == ctf.Uint && v.Uint(f) > math.MaxInt64:
			value = callevent.StringValue(strconv.FormatUint(v.Uint(f), 10))
		}
		dst = append(dst, callevent.KeyValue{Key: a.key, Value: value})
	}
	return dst
}

// Failure returns the name of the error that the function of an exit returned. It returns "" if it returned none.
func (p *RulePart) Failure(e *ctf.Event) string {
	if p.failure == nil || !e.Present(p.failure) {
		return ""
	}
	n := e.Int(p.failure)
	if t, ok := p.failure.Type.(*metadata.Integer); ok && t.Size == 32 {
		// Functions that return addresses have a type without sign.
		n = int64(int32(n))
	}
	if n >= 0 || n < -maxErrno {
		return ""
	}
	return cmp.Or(errnoName(int(-n)), fmt.Sprintf("errno %d", -n))
}
