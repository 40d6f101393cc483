// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// setting is a field of a configuration.
type setting struct {
	// name is as it is written, with dots between the levels and [] behind lists.
	name string
	// value is that of the field, which can be set.
	value reflect.Value
	// foreign: the type of the setting is the Collector's, which describes it.
	foreign bool
}

// inList reports whether the setting is one of an element of a list, which has no default.
func (s setting) inList() bool { return strings.Contains(s.name, "[]") }

// last returns the last part of the setting's name.
func (s setting) last() string { return s.name[strings.LastIndex(s.name, ".")+1:] }

// settingsOf are those of a configuration, which is a pointer to a struct. Lists of structs
// get one element, so that its fields are among them.
func settingsOf(configuration any) []setting {
	return fields("", reflect.ValueOf(configuration).Elem(), false)
}

// fields are the settings of a struct, below those of a prefix.
func fields(prefix string, of reflect.Value, foreign bool) (all []setting) {
	for _, s := range direct(prefix, of, foreign) {
		all = append(all, below(s)...)
	}
	return all
}

// direct are the settings of a struct, without those below them.
func direct(prefix string, of reflect.Value, foreign bool) (all []setting) {
	for i := range of.NumField() {
		field, value := of.Type().Field(i), of.Field(i)
		name, options, tagged := strings.Cut(field.Tag.Get("mapstructure"), ",")
		if !field.IsExported() || name == "-" || field.Tag.Get("mapstructure") == "" {
			continue
		}
		if tagged && options == "squash" {
			all = append(all, direct(prefix, value, foreign || !ours(value.Type()))...)
			continue
		}
		all = append(all, setting{prefix + name, value, foreign})
	}
	return all
}

// below are the settings of which one consists, or itself.
func below(s setting) []setting {
	value := s.value
	switch {
	case isGenerated(value.Type()):
		return []setting{s}
	case value.Kind() == reflect.Struct && isWrapped(value.Type()):
		if inner := optional(value); inner.IsValid() && ours(inner.Type()) {
			return append([]setting{s}, fields(s.name+".", inner, s.foreign)...)
		}
		return []setting{s}
	case value.Kind() == reflect.Struct:
		return fields(s.name+".", value, s.foreign || !ours(value.Type()))
	case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct && ours(value.Type().Elem()):
		if value.Len() == 0 {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		}
		return append([]setting{s}, fields(s.name+"[].", value.Index(0), s.foreign)...)
	default:
		return []setting{s}
	}
}

func ours(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), project) }

// isGenerated reports whether mdatagen has made a type: the settings of metrics and events.
func isGenerated(t reflect.Type) bool { return strings.HasSuffix(t.PkgPath(), "/internal/metadata") }

// optional returns the settings in a configoptional.Optional, which it has from then on. Of other values
// it returns none.
func optional(value reflect.Value) (inner reflect.Value) {
	if get := value.Addr().MethodByName("GetOrInsertDefault"); get.IsValid() {
		return get.Call(nil)[0].Elem()
	}
	return inner
}

// isWrapped reports whether the settings in a struct are not visible from outside, such as those of
// configoptional.
func isWrapped(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("mapstructure") != "" {
			return false
		}
	}
	return true
}

// kind returns the type of a setting as the page names it.
func (s setting) kind() string {
	t := s.value.Type()
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "map"
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Interface:
		return "string or int"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return "list of strings"
	case t.Kind() == reflect.Slice:
		return "list of " + strings.Join(elements(s), ", ")
	default:
		return t.Kind().String()
	}
}

// elements are the names of the settings of a list's elements, without those that the Collector describes.
func elements(s setting) (names []string) {
	for _, inner := range fields("", s.value.Index(0), false) {
		if !inner.foreign {
			names = append(names, "`"+inner.name+"`")
		}
	}
	return names
}

// scalar returns a setting's value as text, if it can be compared.
func (s setting) scalar() (text string, ok bool) {
	switch value := s.value.Interface().(type) {
	case time.Duration:
		return value.String(), true
	case bool, int, float64:
		return fmt.Sprint(value), true
	}
	if s.value.Kind() == reflect.String {
		return s.value.String(), true
	}
	return "", false
}
