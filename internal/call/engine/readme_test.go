// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// documented is the folder of the component that documents the engine, and ofConnector that of the one that
// documents repeated calls.
const (
	documented  = "../../../processor/stackpairingprocessor/"
	ofConnector = "../../../connector/stackpairingconnector/"
)

// table returns the rows of the table in a folder's README.md with this first heading.
func table(t *testing.T, folder, heading string) (rows [][]string) {
	t.Helper()
	readme, err := os.ReadFile(folder + "README.md")
	require.NoError(t, err)
	found := false
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == heading:
			found = true
		case found && !strings.HasPrefix(line, "|"):
			return rows
		case found && !strings.HasPrefix(line, "|--"):
			rows = append(rows, cells)
		}
	}
	require.NotEmpty(t, rows, "a table that begins with %q", heading)
	return rows
}

// firsts returns the first cells of a table, without their quotes.
func firsts(t *testing.T, heading string) []string {
	t.Helper()
	return firstsOf(t, documented, heading)
}

func firstsOf(t *testing.T, folder, heading string) (names []string) {
	t.Helper()
	for _, row := range table(t, folder, heading) {
		names = append(names, strings.Trim(row[0], "`"))
	}
	return names
}

func TestTheReadmeHasEachSettingWithItsDefault(t *testing.T) {
	var rows []string
	for _, row := range table(t, documented, "Setting") {
		require.Len(t, row, 3)
		assert.NotEmpty(t, row[2], row[0])
		rows = append(rows, strings.Trim(row[0], "`")+" = "+row[1])
	}
	assert.Equal(t, settings("", reflect.ValueOf(DefaultConfig()).Elem()), rows, "names, defaults and order")
}

// settings returns "name = default" for each setting of a configuration.
func settings(prefix string, config reflect.Value) (all []string) {
	for i := range config.NumField() {
		name := prefix + config.Type().Field(i).Tag.Get("mapstructure")
		if config.Type().Field(i).Anonymous {
			all = append(all, settings(prefix, config.Field(i))...)
			continue
		}
		switch value := config.Field(i).Interface().(type) {
		case time.Duration:
			text := value.String()
			if value > 0 && value%time.Minute == 0 {
				text = strings.TrimSuffix(text, "0s")
			}
			all = append(all, name+" = "+text)
		case int, bool, string, []string:
			all = append(all, fmt.Sprint(name, " = ", value))
		default:
			all = append(all, settings(name+".", config.Field(i))...)
		}
	}
	return all
}

func TestTheReadmeHasEachAttribute(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "spans.go", nil, 0)
	require.NoError(t, err)
	var declared []string
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			spec := s.(*ast.ValueSpec)
			if strings.HasPrefix(spec.Names[0].Name, "attribute") {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				declared = append(declared, value)
			}
		}
	}
	require.Greater(t, len(declared), 10)
	assert.ElementsMatch(t, declared, append(firsts(t, "Attribute"), firstsOf(t, ofConnector, "Attribute")...))
}

func TestTheReadmeHasEachCause(t *testing.T) {
	var causes []string
	for cause := callevent.CauseSuspended; cause < callevent.CauseCount; cause++ {
		causes = append(causes, cause.String())
	}
	assert.Equal(t, causes, firsts(t, "Cause"))
}

func TestTheReadmeHasEachMetricAndReason(t *testing.T) {
	documentation, err := os.ReadFile(documented + "documentation.md")
	require.NoError(t, err)
	var metrics []string
	for _, m := range regexp.MustCompile(`### otelcol_processor_stack_pairing_(\w+)`).FindAllStringSubmatch(string(documentation), -1) {
		metrics = append(metrics, m[1])
	}
	require.NotEmpty(t, metrics)
	assert.ElementsMatch(t, metrics, firsts(t, "Metric"))
	assert.Equal(t, []string{string(refusedForGood), string(atShutdown), string(memoryBudget)}, firsts(t, "`reason`"))
	assert.Equal(t, []string{string(boundMaxStreams), string(boundMaxMiB), string(boundBudget)}, firsts(t, "`bound`"))
}

// Every configuration in the README is valid.
func TestTheReadmesConfigurationsAreValid(t *testing.T) {
	readme, err := os.ReadFile(documented + "README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(block[1]))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		sub, err := conf.Sub("processors::stack_pairing")
		require.NoError(t, err)
		cfg := DefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, cfg.Validate())
	}
}
