// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"regexp"
	"strconv"
	"strings"
)

// Locale is the locale in which a server writes some numbers: times, averages, rates, and the counts of matched
// classes. Counts of calls and times in whole milliseconds are not localized.
type Locale string

// Locales of Java 17. The released server writes these with the option -Duser.language.
const (
	Arabic  Locale = "ar-EG"
	Persian Locale = "fa-IR"
	Hindi   Locale = "hi-IN-u-nu-deva"
	Thai    Locale = "th-TH" // years of the Buddhist calendar
)

// locales have the digit zero, the decimal point, and the number of years by which the calendar is ahead.
var locales = map[Locale]struct {
	zero, point rune
	years       int
}{
	Arabic:  {'٠', '٫', 0},
	Persian: {'۰', '٫', 0},
	Hindi:   {'०', '.', 0},
	Thai:    {'0', '.', 543},
}

// localized matches the numbers that the server writes in its locale.
var localized = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|-cnt:\d+|\| \d+\.\d\d\b|fragment\[\d+`)

// text converts the console's text to the locale. The number of characters stays the same.
func (l Locale) text(data []byte) []byte {
	of, known := locales[l]
	if !known {
		return data
	}
	return localized.ReplaceAllFunc(data, func(number []byte) []byte {
		if year, rest := number[:min(4, len(number))], number[min(4, len(number)):]; len(rest) > 0 && rest[0] == '-' {
			if n, err := strconv.Atoi(string(year)); err == nil {
				number = append([]byte(strconv.Itoa(n+of.years)), rest...)
			}
		}
		return []byte(strings.Map(func(r rune) rune {
			switch {
			case r >= '0' && r <= '9':
				return of.zero + r - '0'
			case r == '.':
				return of.point
			}
			return r
		}, string(number)))
	})
}
