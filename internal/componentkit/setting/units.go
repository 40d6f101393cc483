// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Units returns an error for each time in raw that has no unit, or that is no time. The Collector reads a number as nanoseconds,
// and its writer means another unit. raw is a part of a configuration, at field. It is empty, or ends with a dot. settings is
// the struct that this part is for.
func Units(field string, raw any, settings any) error {
	return errors.Join(units(field, raw, reflect.TypeOf(settings))...)
}

func units(field string, raw any, t reflect.Type) (errs []error) {
	switch value := raw.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil
		}
		for i := range t.NumField() {
			f := t.Field(i)
			switch name, _, _ := strings.Cut(f.Tag.Get("mapstructure"), ","); {
			case strings.HasSuffix(f.Tag.Get("mapstructure"), ",squash"):
				errs = append(errs, units(field, value, f.Type)...)
			case f.Type.Kind() == reflect.Struct:
				errs = append(errs, units(field+name+".", value[name], f.Type)...)
			default:
				errs = append(errs, units(field+name, value[name], f.Type)...)
			}
		}
	case []any:
		for i := range value {
			if t.Kind() == reflect.Slice {
				errs = append(errs, units(fmt.Sprintf("%s[%d].", field, i), value[i], t.Elem())...)
			}
		}
	case int, int64, uint64, float64:
		if t == reflect.TypeFor[time.Duration]() && !reflect.ValueOf(value).IsZero() {
			errs = append(errs, noTime(field, value))
		}
	case string:
		if _, err := time.ParseDuration(value); t == reflect.TypeFor[time.Duration]() && err != nil {
			errs = append(errs, noTime(field, strconv.Quote(value)))
		}
	}
	return errs
}

func noTime(field string, value any) error {
	return fmt.Errorf("%s is %v: write a time with its unit, such as 100ms or 1s", field, value)
}
