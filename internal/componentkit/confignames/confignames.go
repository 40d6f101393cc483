// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package confignames reads configurations, and finds the setting that a misspelt name probably means. It knows the names of settings by
// the types of configurations, and no component.
package confignames

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal reads a configuration into settings, a pointer to a struct. Its error about an unknown setting has the name that was
// probably meant. The Collector's own error has only the wrong name.
func Unmarshal(conf *confmap.Conf, settings any) error {
	n := names{root: reflect.TypeOf(settings).Elem()}
	n.check("", conf.ToStringMap(), n.root)
	if err := errors.Join(n.errs...); err != nil {
		return err
	}
	return conf.Unmarshal(settings)
}

// names compares the names in a configuration with those of settings.
type names struct {
	root reflect.Type
	errs []error
}

// check adds an error for each name in raw that t has not. raw is a part of a configuration, at field.
func (n *names) check(field string, raw any, t reflect.Type) {
	switch value := raw.(type) {
	case map[string]any:
		known := namesOf(t)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if of, ok := known[name]; ok {
				n.check(field+name+".", value[name], of)
			} else if known != nil {
				n.errs = append(n.errs, n.unknown(field, name, known))
			}
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for i := range value {
				n.check(fmt.Sprintf("%s[%d].", strings.TrimSuffix(field, "."), i), value[i], t.Elem())
			}
		}
	}
}

// unknown is the error about a name at field, where other names are known.
func (n *names) unknown(field, name string, known map[string]reflect.Type) error {
	if best := nearest(name, known); best != "" {
		return fmt.Errorf("%s%s is not a setting: did you mean %s%s?", field, name, field, best)
	}
	if elsewhere := place("", name, n.root); elsewhere != "" {
		return fmt.Errorf("%s%s is not a setting: did you mean %s?", field, name, elsewhere)
	}
	return fmt.Errorf("%s%s is not a setting: remove it, or use one of %s", field, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// nearest returns the known name that is most like a wrong one, or nothing if all are too different.
func nearest(name string, known map[string]reflect.Type) (best string) {
	least := 1 + max(1, len(name)/3) // a change for every three letters
	for _, candidate := range slices.Sorted(maps.Keys(known)) {
		if distance := levenshtein.ComputeDistance(name, candidate); distance < least {
			best, least = candidate, distance
		}
	}
	return best
}

// place returns the first setting with this name at any depth of a struct, in full.
func place(field, name string, t reflect.Type) string {
	known := namesOf(t)
	if _, found := known[name]; found {
		return field + name
	}
	for _, part := range slices.Sorted(maps.Keys(known)) {
		if found := place(field+part+".", name, known[part]); found != "" {
			return found
		}
	}
	return ""
}

// namesOf returns the settings of a struct with their types. It is nil if the type has others, or is no struct.
func namesOf(t reflect.Type) map[string]reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	// configoptional.Optional[T] has the settings of T.
	if get, wrapped := reflect.PointerTo(t).MethodByName("GetOrInsertDefault"); wrapped {
		return namesOf(get.Type.Out(0).Elem())
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		switch {
		case !f.IsExported() && options != "squash" || name == "-":
		case options == "squash":
			inner := namesOf(f.Type)
			if inner == nil {
				return nil
			}
			maps.Copy(known, inner)
		case name == "" || options == "remain":
			return nil
		default:
			known[name] = f.Type
		}
	}
	if len(known) == 0 {
		return nil
	}
	return known
}
