// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Bounds on field classes.
const (
	maxDepth     = 64
	maxPath      = 64
	maxAlignment = 1 << 20
	maxBits      = 64
)

// structure reads a property that is a structure or the alias of one. It returns nil if there is no such property.
func (p *Parser) structure(o object, name string) *metadata.Struct {
	if !o.has(name) {
		return nil
	}
	v := o.get(name)
	s, ok := p.fieldClass(v, 0).(*metadata.Struct)
	if !ok {
		v.fail("a structure", "another field class")
	}
	return s
}

// fieldClass reads a field class or the name of an alias (section 5.3).
func (p *Parser) fieldClass(v value, depth int) metadata.Type {
	if depth == maxDepth {
		v.fail(fmt.Sprintf("at most %d levels of nesting", maxDepth), "more")
	}
	if name, ok := v.value.(string); ok {
		t, known := p.aliases[name]
		if !known {
			v.fail("the name of a field class alias that was declared before", "%q", name)
		}
		return t
	}
	o := v.object()
	switch kind := o.text("type"); kind {
	case "fixed-length-bit-array":
		return fixedLength(o)
	case "fixed-length-bit-map":
		t := fixedLength(o)
		if t.Flags = o.get("flags").mappings(); len(t.Flags) == 0 {
			o.get("flags").fail("one or more flags", "none")
		}
		return t
	case "fixed-length-boolean":
		t := fixedLength(o)
		t.Boolean = true
		return t
	case "fixed-length-unsigned-integer", "fixed-length-signed-integer":
		t := fixedLength(o)
		return integer(o, t, kind == "fixed-length-signed-integer")
	case "variable-length-unsigned-integer", "variable-length-signed-integer":
		t := &metadata.Integer{Variable: true, Size: maxBits, Align: 8}
		return integer(o, t, kind == "variable-length-signed-integer")
	case "fixed-length-floating-point-number":
		return float(o)
	case "null-terminated-string":
		return &metadata.String{Encoding: encoding(o)}
	case "static-length-string":
		return &metadata.Bytes{Length: o.get("length").unsigned(), Encoding: encoding(o)}
	case "dynamic-length-string":
		return &metadata.Bytes{LengthRef: location(o, "length-field-location"), Encoding: encoding(o)}
	case "static-length-blob":
		return &metadata.Bytes{Length: o.get("length").unsigned(), MediaType: o.textOr("media-type", ""), Roles: roles(o)}
	case "dynamic-length-blob":
		return &metadata.Bytes{LengthRef: location(o, "length-field-location"), MediaType: o.textOr("media-type", "")}
	case "structure":
		return p.members(o, depth)
	case "static-length-array":
		return p.array(o, depth, &metadata.Array{Length: o.get("length").unsigned()})
	case "dynamic-length-array":
		return p.array(o, depth, &metadata.Array{LengthRef: location(o, "length-field-location")})
	case "optional":
		return p.optional(o, depth)
	case "variant":
		return p.variant(o, depth)
	default:
		o.get("type").fail("the type of a field class", "%q", kind)
		return nil
	}
}

// fixedLength reads the properties that all bit arrays have (section 5.3.4).
func fixedLength(o object) *metadata.Integer {
	t := &metadata.Integer{
		Size:  o.get("length").unsigned(),
		Align: alignment(o, "alignment"),
		Order: byteOrder(o),
		Base:  10,
	}
	if t.Size == 0 || t.Size > maxBits {
		o.get("length").fail(fmt.Sprintf("1 to %d bits", maxBits), "%d", t.Size)
	}
	return t
}

func byteOrder(o object) metadata.ByteOrder {
	order, natural := metadata.LittleEndian, "first-to-last"
	switch o.text("byte-order") {
	case "little-endian":
	case "big-endian":
		order, natural = metadata.BigEndian, "last-to-first"
	default:
		o.get("byte-order").fail("little-endian or big-endian", "%q", o.text("byte-order"))
	}
	if bits := o.textOr("bit-order", natural); bits != natural {
		o.get("bit-order").fail(natural+" for this byte order", "%q", bits)
	}
	return order
}

// alignment reads an alignment in bits. The default is 1.
func alignment(o object, name string) uint64 {
	n := o.unsignedOr(name, 1)
	if n == 0 || n&(n-1) != 0 || n > maxAlignment {
		o.get(name).fail(fmt.Sprintf("a power of two up to %d", maxAlignment), "%d", n)
	}
	return n
}

// integer reads the properties that all integers have (section 5.3.7).
func integer(o object, t *metadata.Integer, signed bool) metadata.Type {
	t.Signed = signed
	switch base := o.unsignedOr("preferred-display-base", 10); base {
	case 2, 8, 10, 16:
		t.Base = uint8(base)
	default:
		o.get("preferred-display-base").fail("2, 8, 10 or 16", "%d", base)
	}
	t.Mappings = o.get("mappings").mappings()
	t.Enum = len(t.Mappings) > 0
	if !signed {
		t.Roles = roles(o)
	}
	return t
}

func float(o object) metadata.Type {
	t := &metadata.Float{Size: o.get("length").unsigned(), Align: alignment(o, "alignment"), Order: byteOrder(o)}
	if t.Size != 32 && t.Size != 64 {
		o.get("length").fail("32 or 64 bits", "%d", t.Size)
	}
	return t
}

func encoding(o object) metadata.Encoding {
	switch e := o.textOr("encoding", "utf-8"); e {
	case "utf-8":
		return metadata.UTF8
	case "utf-16be":
		return metadata.UTF16BE
	case "utf-16le":
		return metadata.UTF16LE
	case "utf-32be":
		return metadata.UTF32BE
	case "utf-32le":
		return metadata.UTF32LE
	default:
		o.get("encoding").fail("an encoding of Unicode", "%q", e)
		return 0
	}
}

// roleNames are the roles of sections 5.6.1 and 5.8.1.
var roleNames = map[string]metadata.Role{
	"packet-magic-number":                     metadata.RoleMagic,
	"metadata-stream-uuid":                    metadata.RoleUUID,
	"data-stream-class-id":                    metadata.RoleStreamClass,
	"data-stream-id":                          metadata.RoleStreamInstance,
	"default-clock-timestamp":                 metadata.RoleClock,
	"packet-end-default-clock-timestamp":      metadata.RolePacketEnd,
	"packet-content-length":                   metadata.RoleContentSize,
	"packet-total-length":                     metadata.RolePacketSize,
	"packet-sequence-number":                  metadata.RoleSequence,
	"discarded-event-record-counter-snapshot": metadata.RoleDiscarded,
	"event-record-class-id":                   metadata.RoleEventClass,
}

func roles(o object) metadata.Role {
	var all metadata.Role
	for _, v := range o.get("roles").array() {
		role, ok := roleNames[v.text()]
		if !ok {
			v.fail("a role", "%q", v.text())
		}
		all |= role
	}
	return all
}

// location reads the location of another field (section 5.3.1).
func location(o object, name string) *metadata.Ref {
	l := o.get(name).object()
	ref := &metadata.Ref{Where: o.where}
	if l.has("origin") {
		if ref.Origin = origins[l.text("origin")]; ref.Origin == metadata.NoScope {
			l.get("origin").fail("the name of a scope", "%q", l.text("origin"))
		}
	}
	path := l.get("path").array()
	if len(path) == 0 || len(path) > maxPath {
		l.get("path").fail(fmt.Sprintf("1 to %d names", maxPath), "%d", len(path))
	}
	for _, v := range path {
		switch {
		case v.value != nil:
			ref.Path = append(ref.Path, v.text())
		case len(ref.Path) > 0:
			ref.Path = ref.Path[:len(ref.Path)-1]
		default:
			ref.Up++
		}
	}
	if len(ref.Path) == 0 || path[len(path)-1].value == nil {
		l.get("path").fail("a name at the end of the path", "null")
	}
	if ref.Origin != metadata.NoScope && ref.Up > 0 {
		l.get("path").fail("a path inside its origin", "null at its begin")
	}
	return ref
}

// origins maps the names of scopes in locations to scopes.
var origins = map[string]metadata.Scope{
	"packet-header":                 metadata.PacketHeader,
	"packet-context":                metadata.PacketContext,
	"event-record-header":           metadata.EventHeader,
	"event-record-common-context":   metadata.EventCommonContext,
	"event-record-specific-context": metadata.EventContext,
	"event-record-payload":          metadata.EventFields,
}

// members reads a structure (section 5.3.18).
func (p *Parser) members(o object, depth int) metadata.Type {
	var members []metadata.Member
	names := map[string]bool{}
	for _, v := range o.get("member-classes").array() {
		m := v.object()
		name := m.text("name")
		if names[name] {
			m.fail("one member of the name "+name, "a second one")
		}
		names[name] = true
		members = append(members, metadata.Member{Name: name, Type: p.fieldClass(m.get("field-class"), depth+1)})
	}
	return metadata.NewStruct(members, alignment(o, "minimum-alignment"))
}

// array reads the properties that all arrays have (section 5.3.19).
func (p *Parser) array(o object, depth int, t *metadata.Array) metadata.Type {
	t.Element = p.fieldClass(o.get("element-field-class"), depth+1)
	if metadata.Dimensions(t.Element, maxDepth) == maxDepth {
		o.get("element-field-class").fail(fmt.Sprintf("an array of at most %d dimensions", maxDepth), "more")
	}
	t.MinAlign = alignment(o, "minimum-alignment")
	return t
}

// optional reads an optional field (section 5.3.22).
func (p *Parser) optional(o object, depth int) metadata.Type {
	t := &metadata.Optional{
		Selector: *location(o, "selector-field-location"),
		Type:     p.fieldClass(o.get("field-class"), depth+1),
	}
	if o.has("selector-field-ranges") {
		t.Ranges = o.get("selector-field-ranges").ranges()
	}
	return t
}

// variant reads a variant (section 5.3.23).
func (p *Parser) variant(o object, depth int) metadata.Type {
	t := &metadata.Variant{Selector: *location(o, "selector-field-location")}
	for _, v := range o.get("options").array() {
		option := v.object()
		t.Options = append(t.Options, metadata.Option{
			Name:   option.textOr("name", ""),
			Type:   p.fieldClass(option.get("field-class"), depth+1),
			Ranges: option.get("selector-field-ranges").ranges(),
		})
	}
	if len(t.Options) == 0 {
		o.get("options").fail("one or more options", "none")
	}
	return t
}
