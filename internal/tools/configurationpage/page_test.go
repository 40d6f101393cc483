// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	bounds "github.com/callbraid/callbraid/internal/componentkit/setting"
)

func TestThePageAndTheSchemaAreUpToDate(t *testing.T) {
	page, schema := filepath.Join(t.TempDir(), "made.md"), filepath.Join(t.TempDir(), "made.json")
	require.NoError(t, write("../../..", page, schema))
	for made, stored := range map[string]string{page: "../../../docs/configuration.md", schema: "../../../config/schema.json"} {
		want, err := os.ReadFile(made)
		require.NoError(t, err)
		got, err := os.ReadFile(stored)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "run make generate")
	}
}

func TestAnUnknownComponentIsAnError(t *testing.T) {
	require.NoError(t, complete("  import: github.com/callbraid/callbraid/receiver/rbkitreceiver\n  import: example.com/other\n"))
	assert.EqualError(t, complete("    import: github.com/callbraid/callbraid/receiver/newreceiver\n"),
		"builder-config.yaml has receiver/newreceiver: add it to the components of internal/tools/configurationpage")
}

// played is the configuration of a component that isn't.
type played struct {
	Endpoint string         `mapstructure:"endpoint"`
	Least    int            `mapstructure:"least"`
	Free     string         `mapstructure:"free"`
	Wait     time.Duration  `mapstructure:"wait"`
	Pause    pause          `mapstructure:"pause"`
	Rules    []rule         `mapstructure:"rules"`
	More     map[string]any `mapstructure:"more"`
}

type pause struct {
	Initial time.Duration `mapstructure:"initial"`
	Max     time.Duration `mapstructure:"max"`
}

type rule struct {
	Class string `mapstructure:"class"`
	Limit int    `mapstructure:"limit"`
}

func (p *played) Validate() error {
	if err := bounds.Between("least", p.Least, 3, math.MaxInt); err != nil {
		return err
	}
	if len(p.Rules) > 0 {
		if err := bounds.Between("rules[0].limit", p.Rules[0].Limit, -1, 7); err != nil {
			return err
		}
	}
	return bounds.Within("wait", p.Wait, time.Second, 36*time.Hour)
}

var playing = described{"extension/played", extension.NewFactory(component.MustNewType("played"), func() component.Config {
	return &played{Endpoint: "localhost:1", Least: 5, Wait: time.Minute, Pause: pause{time.Second, time.Hour}}
}, nil, component.StabilityLevelAlpha)}

const (
	tableHead = "# Played\n\n## Settings\n\n| Setting | Default | |\n|---|---|---|\n"
	whole     = tableHead + "| `endpoint` | `localhost:1` | Where. |\n" +
		"| `least` | 5 | How many. |\n" +
		"| `free` | none | Any text. |\n" +
		"| `wait` | `1m` | How long, see [below](#waiting). |\n" +
		"| `pause.initial`, `.max` | `1s`, `1h` | Pauses. |\n" +
		"| `rules` | none | Rules. |\n" +
		"| `….limit` | `2` | Of each, see [all](../../docs/all.md). |\n" +
		"| `more` | all | See [more](documentation.md) and [else](https://example.com/#x). |\n" +
		"\nText.\n\n| `no` | row | of it |\n"
)

func tableOf(t *testing.T, readme string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte(readme), 0o600))
	rows, err := readRows(dir)
	if err != nil {
		return "", err
	}
	return playing.table(rows)
}

func TestATableHasTypesDefaultsAndRanges(t *testing.T) {
	table, err := tableOf(t, whole)
	require.NoError(t, err)
	assert.Equal(t, "| `endpoint` | string | `localhost:1` |  | Where. |\n"+
		"| `least` | int | `5` | 3 or more | How many. |\n"+
		"| `free` | string | none |  | Any text. |\n"+
		"| `wait` | duration | `1m` | 1s to 36h | How long, see [below](../extension/played/README.md#waiting). |\n"+
		"| `pause.initial`, `.max` | duration | `1s`, `1h` |  | Pauses. |\n"+
		"| `rules` | list of `class`, `limit` | none |  | Rules. |\n"+
		"| `….limit` | int | `2` | -1 to 7 | Of each, see [all](all.md). |\n"+
		"| `more` | map | all |  | See [more](../extension/played/documentation.md) and [else](https://example.com/#x). |\n",
		relinked(table, playing.directory))
}

func TestAReadmeThatDoesNotFitIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"a setting without a row":     {"| `free` | none | Any text. |\n", "", "expected a row for the setting free, got none"},
		"a list without a row":        {"| `rules` | none | Rules. |\n", "", "expected a row for the setting rules, got none"},
		"a row without a setting":     {"`free`", "`gone`", "gone: there is no such setting"},
		"a default that was":          {"| 5 |", "| 6 |", `least: expected the default "5", got "6"`},
		"a duration that was":         {"`1m`", "`2m`", `wait: expected the default "1m0s", got "2m"`},
		"one default of two that was": {"`1s`, `1h`", "`1s`, `2h`", `pause.max: expected the default "1h0m0s", got "2h"`},
		"a cell too many":             {"| Any text. |", "| Any | text. |", "expected 3 cells, got 4"},
		"no table":                    {"|", "", "expected a table of settings"},
		"no chapter":                  {"## Settings", "## Else", "expected a chapter"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tableOf(t, strings.ReplaceAll(whole, test.old, test.new))
			assert.ErrorContains(t, err, test.want)
		})
	}
}
