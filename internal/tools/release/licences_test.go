// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestLicencesAndBillOfMaterialsIncludeScripts(t *testing.T) {
	t.Chdir("../../..") // the root of the project
	path := filepath.Join(t.TempDir(), "licences.txt")
	if err := writeLicences(path, &contents{golang: runtime.Version()}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := scriptPackages()
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 3 {
		t.Errorf("expected speedscope, d3-flame-graph and d3-selection, got %v", packages)
	}
	wanted := []string{"==== Go go", "Jamie Wong", "SIL OPEN FONT LICENSE", "Mike Bostock"}
	for _, p := range packages {
		wanted = append(wanted, "==== "+p.Name+"@"+p.Version+": LICENSE")
	}
	for _, want := range wanted {
		if !strings.Contains(string(text), want) {
			t.Errorf("expected %q in the licences", want)
		}
	}
	bom := filepath.Join(t.TempDir(), "bom.json")
	if err := (&release{}).writeBOM(bom, &contents{golang: runtime.Version(), programs: []program{{name: collector}, {name: "agentctl"}}}); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(bom); err != nil {
		t.Fatal(err)
	}
	// Once as a component with its name and address, and once as a dependency of the collector alone.
	for _, p := range packages {
		if got := strings.Count(string(text), p.ToString()); got != 3 {
			t.Errorf("expected %s three times, got %d: %s", p, got, text)
		}
	}
}
