// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding"
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// schema is a JSON schema, of which editors read draft 7.
type schema map[string]any

const (
	// expanded matches a text that the Collector replaces by a value of any type, such as ${env:PORT}.
	expanded = `\$\{`
	duration = `^[-+]?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`
	comment  = "Made by make generate: change the table in the README.md, or the code of a component."
)

// schemaOf returns the schema of a file of configuration. It knows the settings of the project's components. Components of others may
// have any settings, because a collector can contain any of them.
func schemaOf(project string) ([]byte, error) {
	definitions := schema{}
	file := schema{"service": service()}
	for _, c := range components {
		m, err := readMetadata(filepath.Join(project, c.directory))
		if err != nil {
			return nil, err
		}
		of, err := c.schema(project)
		if err != nil {
			return nil, err
		}
		of["description"] = m.Description
		name := m.Status.Class + "_" + m.Type
		definitions[name] = of
		section := m.Status.Class + "s"
		if file[section] == nil {
			file[section] = schema{"type": []string{"object", "null", "string"}, "pattern": expanded, "patternProperties": schema{}}
		}
		file[section].(schema)["patternProperties"].(schema)["^"+m.Type+"(/.*)?$"] = schema{"$ref": "#/definitions/" + name}
	}
	text, err := json.MarshalIndent(schema{
		"$schema": "http://json-schema.org/draft-07/schema#", "$comment": comment, "title": "Configuration of otelcol-callbraid",
		"type": "object", "properties": file, "additionalProperties": false, "definitions": definitions,
	}, "", " ")
	return append(text, '\n'), err
}

// service is the schema of the section of that name.
func service() schema {
	names := schema{"type": []string{"array", "null", "string"}, "pattern": expanded, "items": schema{"type": "string"}}
	return object(schema{
		"extensions": names,
		"telemetry":  schema{}, // the Collector's own
		"pipelines": schema{
			"type": []string{"object", "null", "string"}, "pattern": expanded, "additionalProperties": false,
			"patternProperties": schema{
				"^(traces|metrics|logs|profiles)(/.*)?$": object(schema{"receivers": names, "processors": names, "exporters": names}),
			},
		},
	})
}

// object is the schema of settings that have these names and no others.
func object(properties schema) schema {
	return schema{"type": []string{"object", "null", "string"}, "pattern": expanded, "properties": properties, "additionalProperties": false}
}

// schema is that of a component.
func (c described) schema(project string) (schema, error) {
	rows, err := readRows(filepath.Join(project, c.directory))
	if err != nil {
		return nil, err
	}
	configuration := c.factory.CreateDefaultConfig()
	described := descriptions{}
	all := settingsOf(configuration)
	for _, r := range rows {
		named, err := r.named(all)
		if err != nil {
			return nil, err
		}
		for _, s := range named {
			if described[s.name], err = c.description(s, r); err != nil {
				return nil, err
			}
		}
	}
	return described.ofStruct("", reflect.ValueOf(c.factory.CreateDefaultConfig()).Elem()), nil
}

// description is the text that an editor shows beside a setting.
func (c described) description(s setting, r row) (string, error) {
	text := plain(r.meaning)
	bounds, err := rangeOf(c.factory, s.name)
	if bounds != "" {
		text += " Range: " + bounds + "."
	}
	if r.fallback != "" && !s.inList() {
		if _, scalar := s.scalar(); !scalar {
			text += " Default: " + plain(r.fallback) + "."
		}
	}
	return text, err
}

// linked matches a link, whose target is no use in an editor.
var linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func plain(text string) string { return strings.TrimSpace(linked.ReplaceAllString(text, "$1")) }

// descriptions are texts by the name of a setting.
type descriptions map[string]string

// ofStruct is the schema of the settings of a struct, whose names begin with a prefix.
func (d descriptions) ofStruct(prefix string, of reflect.Value) schema {
	properties := schema{}
	for _, s := range direct(prefix, of, false) {
		is := d.value(s.name, s.value)
		if text := d[s.name]; text != "" {
			is["description"] = text
		}
		if fallback, scalar := s.scalar(); scalar && !s.inList() && d[s.name] != "" && fallback != "" {
			is["default"] = s.value.Interface()
			if s.value.Type() == reflect.TypeFor[time.Duration]() {
				is["default"] = short(fallback)
			}
		}
		properties[strings.TrimPrefix(s.name, prefix)] = is
	}
	return object(properties)
}

// value is the schema of a setting's values. Each can be empty, which stands for the default, or be a text that the Collector replaces.
func (d descriptions) value(name string, v reflect.Value) schema {
	t := v.Type()
	is := func(kind string) schema { return schema{"type": []string{kind, "null", "string"}, "pattern": expanded} }
	switch {
	case t == reflect.TypeFor[time.Duration]():
		// A number would be nanoseconds.
		return schema{"type": []string{"string", "integer", "null"}, "pattern": duration + "|" + expanded, "minimum": 0, "maximum": 0}
	case t.Kind() == reflect.Pointer:
		return d.value(name, reflect.New(t.Elem()).Elem())
	case t.Kind() == reflect.Struct:
		return d.structure(name, v)
	case t.Kind() == reflect.Slice && !reflect.PointerTo(t).Implements(reflect.TypeFor[confmap.Unmarshaler]()):
		list := is("array")
		list["items"] = d.value(name+"[]", reflect.New(t.Elem()).Elem())
		if t.Elem().Kind() == reflect.String {
			delete(list, "pattern") // one text, or several with commas
		}
		return list
	case t.Kind() == reflect.Map:
		of := is("object")
		of["additionalProperties"] = d.value(name+"{}", reflect.New(t.Elem()).Elem())
		return of
	case t.Kind() == reflect.Bool:
		return is("boolean")
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return is("number")
	case v.CanInt() || v.CanUint():
		return is("integer")
	case t.Kind() == reflect.String:
		return schema{"type": []string{"string", "null"}}
	default: // any, and types with a form of their own
		return schema{}
	}
}

// structure is the schema of a struct, of an optional one, or of a struct that is written as a text.
func (d descriptions) structure(name string, v reflect.Value) schema {
	text := reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	inner := v
	if isWrapped(v.Type()) {
		if inner = optional(v); !inner.IsValid() {
			if text {
				return schema{"type": []string{"string", "null"}}
			}
			return schema{}
		}
	}
	if inner.Kind() != reflect.Struct {
		return d.value(name, inner)
	}
	of := d.ofStruct(name+".", inner)
	if text {
		delete(of, "pattern")
	}
	return of
}
