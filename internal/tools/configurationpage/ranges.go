// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
)

// Values that are outside of every range.
const (
	farBelow     = -1_000_000
	farAbove     = math.MaxInt - 1
	noWord       = "?"
	unboundedInt = " to 9223372036854775807"
)

// rangeOf returns the range of a setting, from the validation errors of values outside of it;
// empty: any value is valid.
func rangeOf(factory component.Factory, name string) (string, error) {
	var remedies []string
	for _, wrong := range wrongValues {
		configuration := factory.CreateDefaultConfig()
		for _, s := range settingsOf(configuration) {
			if s.name != name || !wrong(s.value) {
				continue
			}
			remedy, err := remedyOf(configuration, name)
			if err != nil {
				return "", err
			}
			if remedy != "" && (len(remedies) == 0 || remedies[0] != remedy) {
				remedies = append(remedies, remedy)
			}
		}
	}
	return strings.Join(remedies, ", "), nil
}

// wrongValues set a value to an invalid one, if its type has one.
var wrongValues = []func(reflect.Value) bool{
	func(v reflect.Value) bool { return setNumber(v, farBelow) },
	func(v reflect.Value) bool { return setNumber(v, farAbove) },
	func(v reflect.Value) bool {
		if v.Kind() != reflect.String {
			return false
		}
		v.SetString(noWord)
		return true
	},
}

func setNumber(v reflect.Value, n int64) bool {
	if v.Kind() == reflect.Float64 {
		v.SetFloat(float64(n))
		return true
	}
	if v.Kind() != reflect.Int && v.Type() != reflect.TypeFor[time.Duration]() {
		return false
	}
	v.SetInt(n)
	return true
}

// zeros are at the end of durations that Go prints.
var zeros = regexp.MustCompile(`\b(\d+h)0m0s\b|\b(\d+m)0s\b|\b(\d+h\d+m)0s\b`)

// short is a text with durations as a person writes them.
func short(text string) string { return zeros.ReplaceAllString(text, "$1$2$3") }

// remedyOf returns the expected value of a setting from the validation error of a configuration.
func remedyOf(configuration component.Config, name string) (string, error) {
	validated, ok := configuration.(interface{ Validate() error })
	if !ok {
		return "", errors.New("expected a configuration with Validate")
	}
	err := validated.Validate()
	if err == nil {
		return "", nil
	}
	for line := range strings.Lines(err.Error()) {
		said, about := strings.CutPrefix(line, strings.ReplaceAll(name, "[]", "[0]")+" is ")
		if !about {
			continue
		}
		_, remedy, bounded := strings.Cut(strings.TrimSpace(said), ": set it")
		if !bounded {
			continue // it is about another setting as well
		}
		remedy, _, _ = strings.Cut(remedy, ": ") // the rest describes this value
		remedy = strings.TrimPrefix(strings.TrimPrefix(remedy, " to "), " ")
		return short(strings.Replace(remedy, unboundedInt, " or more", 1)), nil
	}
	return "", nil
}
