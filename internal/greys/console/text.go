// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// unexpected returns an error for received text; nil means the end of the answer. The decoder adds the offset.
func unexpected(expected string, got []byte) error {
	const shown = 80
	if got == nil {
		return &SyntaxError{Expected: expected, Got: "the end of the answer"}
	}
	if len(got) > shown {
		return &SyntaxError{Expected: expected, Got: fmt.Sprintf("%q and %d bytes more", got[:shown], len(got)-shown)}
	}
	return &SyntaxError{Expected: expected, Got: fmt.Sprintf("%q", got)}
}

// names are interned names, with the parsers of texts that contain them.
type names struct{ javamethods.Names }

// listed appends names that are separated by commas.
func (n *names) listed(to []string, text []byte) []string {
	for len(text) > 0 {
		var name []byte
		if name, text, _ = bytes.Cut(text, []byte(",")); len(name) > 0 {
			to = append(to, n.Intern(name))
		}
	}
	return to
}

// beyondBMP is the first character that Java stores as two units.
const beyondBMP = 0x10000

// units returns the length of a text in UTF-16 units, independent of its width on a screen. Java counts so, and the
// server pads by it.
func units(text []byte) (n int) {
	if isASCII(text) {
		return len(text)
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if n++; r >= beyondBMP {
			n++
		}
	}
	return n
}

func isASCII(text []byte) bool {
	const high = 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		if binary.LittleEndian.Uint64(text)&high != 0 {
			return false
		}
	}
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// maxNumber is the maximum length of a number or a time in characters.
const maxNumber = 40

// number returns a number or a time with ASCII digits, decimal point and minus sign. Servers write some of them in the
// locale of their process: "١٢٫٥٠" is 12.50. Texts with other characters and texts that are too long stay as they are.
func number(text []byte, ascii *[maxNumber]byte) []byte {
	if isASCII(text) || utf8.RuneCount(text) > maxNumber {
		return text
	}
	to := ascii[:0]
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		digit, isDigit := digitOf(r)
		switch {
		case isDigit:
			to = append(to, '0'+digit)
		case r == arabicDecimalSeparator:
			to = append(to, '.')
		case r == minusSign:
			to = append(to, '-')
		case unicode.Is(unicode.Cf, r): // marks of the direction of writing
		case r < utf8.RuneSelf:
			to = append(to, byte(r))
		default:
			return text
		}
	}
	return to
}

const (
	arabicDecimalSeparator = '\u066b'
	minusSign              = '\u2212'
)

// digitOf returns the value of a decimal digit of any script. The ten digits of a script are consecutive and begin with
// zero. The digits of the next script can follow without a gap.
func digitOf(r rune) (digit byte, ok bool) {
	if r >= '0' && r <= '9' {
		return byte(r - '0'), true
	}
	for _, of := range unicode.Nd.R16 {
		if rune(of.Lo) <= r && r <= rune(of.Hi) {
			return byte((r - rune(of.Lo)) % 10), true
		}
	}
	for _, of := range unicode.Nd.R32 {
		if rune(of.Lo) <= r && r <= rune(of.Hi) {
			return byte((r - rune(of.Lo)) % 10), true
		}
	}
	return 0, false
}

// integer reads a whole number of at most 18 digits, of any script. Nearly all are ASCII.
func integer(text []byte) (n int64, ok bool) {
	if n, ok = asciiInteger(text); ok {
		return n, true
	}
	var ascii [maxNumber]byte
	return asciiInteger(number(text, &ascii))
}

func asciiInteger(text []byte) (n int64, ok bool) {
	digits, negative := text, len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	const most = 18
	if len(digits) == 0 || len(digits) > most {
		return 0, false
	}
	for _, c := range digits {
		digit := c - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + int64(digit)
	}
	if negative {
		n = -n
	}
	return n, true
}

// count reads a whole number that is not negative.
func count(text []byte) (n int64, ok bool) {
	n, ok = integer(text)
	return n, ok && n >= 0
}

// maxMilliseconds is the longest time that fits a time.Duration.
const maxMilliseconds = math.MaxInt64 / int64(time.Millisecond)

// milliseconds reads a time in milliseconds: "08.19", or in the server's locale "08,19" or "٠٨٫١٩". A negative time,
// after the server's clock was set back, counts as 0.
func milliseconds(text []byte) (d time.Duration, ok bool) {
	if d, ok = asciiMilliseconds(text); ok {
		return d, true
	}
	var ascii [maxNumber]byte
	return asciiMilliseconds(number(text, &ascii))
}

func asciiMilliseconds(text []byte) (d time.Duration, ok bool) {
	whole, fraction := text, []byte(nil)
	if point := bytes.IndexAny(text, ".,"); point >= 0 {
		whole, fraction = text[:point], text[point+1:]
	}
	n, ok := asciiInteger(whole)
	if !ok || n > maxMilliseconds-1 {
		return 0, false
	}
	d = time.Duration(n) * time.Millisecond
	for unit := time.Millisecond / 10; len(fraction) > 0; unit /= 10 {
		if fraction[0] < '0' || fraction[0] > '9' {
			return 0, false
		}
		d += time.Duration(fraction[0]-'0') * unit
		fraction = fraction[1:]
	}
	if whole[0] == '-' {
		return 0, true
	}
	return d, true
}

// timeLayout is the server's format of times: yyyy-MM-dd HH:mm:ss.
const timeLayout = "2006-01-02 15:04:05"

// clock parses times in a zone. It caches the last one, because many rows have the same time.
type clock struct {
	zone *time.Location
	last [len(timeLayout)]byte
	time time.Time
}

// Years whose times fit in 64 bits as Unix nanoseconds. A server in Thailand's locale writes years of the Buddhist
// calendar, which are larger by buddhistYears.
const firstYear, lastYear, buddhistYears = 1970, 2261, 543

func (c *clock) parse(text []byte) (t time.Time, ok bool) {
	if bytes.Equal(text, c.last[:]) {
		return c.time, true
	}
	var ascii [maxNumber]byte
	text = number(text, &ascii)
	if len(text) != len(timeLayout) {
		return time.Time{}, false
	}
	if bytes.Equal(text, c.last[:]) {
		return c.time, true
	}
	written := string(text)
	if year, ok := asciiInteger(text[:4]); ok && year >= firstYear+buddhistYears {
		written = strconv.FormatInt(year-buddhistYears, 10) + written[4:]
	}
	t, err := time.ParseInLocation(timeLayout, written, c.zone)
	if err != nil || t.Year() < firstYear || t.Year() > lastYear {
		return time.Time{}, false
	}
	copy(c.last[:], text)
	c.time = t
	return t, true
}

func boolean(text []byte) (is, ok bool) {
	switch string(text) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}
