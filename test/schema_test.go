// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// config/schema.json is the schema of configurations for editors.

func configurationSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../config/schema.json")
	require.NoError(t, err)
	return schema
}

// document is a document in YAML as a JSON schema sees it.
func document(t *testing.T, text string) any {
	t.Helper()
	var raw any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw), text)
	asJSON, err := json.Marshal(raw)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)
	return value
}

func TestTheSchemaAcceptsTheShippedConfigurations(t *testing.T) {
	schema := configurationSchema(t)
	for _, path := range append(shippedFiles(t), "../packaging/open.yaml") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(document(t, string(text))), path)
	}
}

func shippedFiles(t *testing.T) (paths []string) {
	t.Helper()
	for _, path := range shippedConfigs(t) {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Blocks of YAML in pages are parts of configurations, or of a manifest.
func TestTheSchemaAcceptsTheConfigurationsOfPages(t *testing.T) {
	schema := configurationSchema(t)
	found := 0
	for _, page := range pagesOf(t, "..") {
		if strings.Contains(page, "testdata") {
			continue
		}
		for _, block := range yamlBlocks(t, page) {
			if part, ok := document(t, dedented(block)).(map[string]any); ok && isConfiguration(part) {
				assert.NoError(t, schema.Validate(part), "%s:\n%s", page, block)
				found++
			}
		}
	}
	assert.Greater(t, found, 20)
}

// dedented is a block without the indentation of its first line, which it has in a list.
func dedented(block string) string {
	indentation := block[:len(block)-len(strings.TrimLeft(block, " "))]
	return strings.ReplaceAll("\n"+block, "\n"+indentation, "\n")
}

// isConfiguration reports whether a document has sections of a configuration. Those of a manifest are lists.
func isConfiguration(document map[string]any) bool {
	for name, section := range document {
		_, isMap := section.(map[string]any)
		if !slices.Contains([]string{"receivers", "processors", "connectors", "exporters", "extensions", "service"}, name) || !isMap {
			return false
		}
	}
	return true
}

func TestTheSchemaRefusesWrongSettings(t *testing.T) {
	schema := configurationSchema(t)
	for name, c := range map[string]struct{ text, want string }{
		"a misspelt setting":               {"receivers: {bytefrog: {endpiont: localhost:1}}", "'/receivers/bytefrog': additional properties 'endpiont' not allowed"},
		"of a second instance":             {"receivers: {bytefrog/2: {endpiont: localhost:1}}", "additional properties 'endpiont' not allowed"},
		"a misspelt setting below another": {"receivers: {bytefrog: {limits: {max_run: 1}}}", "'/receivers/bytefrog/limits': additional properties 'max_run' not allowed"},
		"a misspelt setting of TLS":        {"receivers: {bytefrog: {tls: {cert_fil: a}}}", "additional properties 'cert_fil' not allowed"},
		"a misspelt setting in a list":     {"connectors: {stack_pairing: {keep: {functions: [{nam: a}]}}}", "additional properties 'nam' not allowed"},
		"a misspelt setting of a rule":     {"receivers: {ctf_file: {call_rules: [{entry: {event: a, key: b}}]}}", "additional properties 'key' not allowed"},
		"a misspelt metric":                {"receivers: {rbkit: {metrics: {ruby.gc.cuont: {enabled: true}}}}", "additional properties 'ruby.gc.cuont' not allowed"},
		"a setting of the connector":       {"processors: {stack_pairing: {keep: {ratio: 1}}}", "additional properties 'keep' not allowed"},
		"a text in place of a number":      {"receivers: {bytefrog: {limits: {max_runs: many}}}", "'many' does not match pattern"},
		"a number in place of a text":      {"receivers: {bytefrog: {service_name: 7}}", "got number, want null or string"},
		"a time without a unit":            {"receivers: {bytefrog: {name_wait: 5}}", "maximum: got 5, want 0"},
		"a time with a unit that is none":  {"receivers: {bytefrog: {name_wait: 5sec}}", "'5sec' does not match pattern"},
		"a map in place of a list":         {"receivers: {bytefrog: {agent: {inclusions: {a: b}}}}", "got object, want"},
		"a misspelt section":               {"reciever: {}", "additional properties 'reciever' not allowed"},
		"a misspelt signal":                {"service: {pipelines: {trace: {}}}", "additional properties 'trace' not allowed"},
		"a misspelt part of a pipeline":    {"service: {pipelines: {traces: {receiver: [a]}}}", "additional properties 'receiver' not allowed"},
		"a text in place of a list":        {"service: {pipelines: {traces: {exporters: a}}}", "'a' does not match pattern"},
	} {
		t.Run(name, func(t *testing.T) { assert.ErrorContains(t, schema.Validate(document(t, c.text)), c.want) })
	}
	for _, right := range []string{
		"receivers: {bytefrog: , bytefrog/two: {}}",
		"receivers: {bytefrog: {endpoint: '${env:ENDPOINT}', limits: {max_runs: '${env:RUNS}'}, name_wait: 0}}",
		"receivers: {bytefrog: '${file:bytefrog.yaml}', others: {any: thing}}",
		"receivers: {ctf_file: {include: a, call_rules: [{entry: a_*, exit: {event: b_*}, key_field: a}]}}",
		"receivers: {lttng_jul: {enable: [{domain: jul, logger: a, level: 800}]}}",
		"extensions: {memory_budget: }",
	} {
		assert.NoError(t, schema.Validate(document(t, right)), right)
	}
}
