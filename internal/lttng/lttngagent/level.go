// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Level is the severity of a record, as a number of the logging library. Higher numbers are more severe, but less
// severe in log4j 2.
type Level int32

// levels are the named levels of each domain, the most severe first. Those of log4j 2 are from the documentation of
// log4j 2 and of LTTng 2.14.
var levels = [...][]struct {
	name  string
	level Level
}{
	JUL: {
		{"OFF", math.MaxInt32}, {"SEVERE", 1000}, {"WARNING", 900}, {"INFO", 800}, {"CONFIG", 700},
		{"FINE", 500}, {"FINER", 400}, {"FINEST", 300}, {"ALL", math.MinInt32},
	},
	Log4j: {
		{"OFF", math.MaxInt32}, {"FATAL", 50000}, {"ERROR", 40000}, {"WARN", 30000}, {"INFO", 20000},
		{"DEBUG", 10000}, {"TRACE", 5000}, {"ALL", math.MinInt32},
	},
	Python: {
		{"CRITICAL", 50}, {"ERROR", 40}, {"WARNING", 30}, {"INFO", 20}, {"DEBUG", 10}, {"NOTSET", 0},
	},
	Log4j2: {
		{"OFF", 0}, {"FATAL", 100}, {"ERROR", 200}, {"WARN", 300}, {"INFO", 400},
		{"DEBUG", 500}, {"TRACE", 600}, {"ALL", math.MaxInt32},
	},
}

// ParseLevel returns the level of a number, or of a name of the domain in any case.
func (d Domain) ParseLevel(text string) (Level, error) {
	var names []string
	if d.Valid() {
		for _, l := range levels[d] {
			if strings.EqualFold(l.name, text) {
				return l.level, nil
			}
			names = append(names, l.name)
		}
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return Level(n), nil
	}
	return 0, fmt.Errorf("expected a level of %s (%s) or a number, got %q", d, strings.Join(names, ", "), text)
}

// LevelText returns the domain's name of a level, or the number if there is none.
func (d Domain) LevelText(level Level) string {
	if d.Valid() {
		for _, l := range levels[d] {
			if l.level == level {
				return l.name
			}
		}
	}
	return strconv.Itoa(int(level))
}

// LevelType determines the levels that a level stands for.
type LevelType uint32

// The types, with their numbers in a command.
const (
	AllLevels   LevelType = 0 // all levels
	LevelRange  LevelType = 1 // this level and the more severe ones
	SingleLevel LevelType = 2 // only this level
)

var levelTypeNames = []string{AllLevels: "all", LevelRange: "range", SingleLevel: "single"}

func (t LevelType) String() string {
	if uint64(t) >= uint64(len(levelTypeNames)) {
		return fmt.Sprintf("level type %d", uint32(t))
	}
	return levelTypeNames[t]
}

// ParseLevelType returns the type of a name: all, range or single.
func ParseLevelType(name string) (LevelType, error) {
	if i := slices.Index(levelTypeNames, name); i >= 0 {
		return LevelType(i), nil
	}
	return 0, fmt.Errorf("expected all, range or single, got %q", name)
}

// Levels selects records by their level. The zero value selects all. As with filters, agents ignore it.
type Levels struct {
	kind  LevelType
	level Level // 0 with AllLevels
}

// everyLevel is the level in a command with AllLevels.
const everyLevel = math.MinInt32

// NewLevels returns the levels of a type and a level, which is ignored with AllLevels. It refuses unknown types,
// which would end a real agent's thread.
func NewLevels(t LevelType, level Level) (Levels, error) {
	switch t {
	case AllLevels:
		return Levels{}, nil
	case LevelRange, SingleLevel:
		return Levels{t, level}, nil
	default:
		return Levels{}, &ValueError{fmt.Sprintf("a type of levels from %d to %d", AllLevels, SingleLevel), fmt.Sprint(uint32(t))}
	}
}

// Type returns the type.
func (l Levels) Type() LevelType { return l.kind }

// Level returns the level of the type, or 0 with AllLevels.
func (l Levels) Level() Level { return l.level }
