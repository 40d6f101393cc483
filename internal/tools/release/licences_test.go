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

func TestLicencesAndBillOfMaterialsIncludeSpeedscope(t *testing.T) {
	t.Chdir("../../..") // the root of the project
	path := filepath.Join(t.TempDir(), "licences.txt")
	if err := writeLicences(path, &contents{golang: runtime.Version()}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	viewer, err := speedscopeModule()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"==== Go go", "==== speedscope@" + viewer.Version + ": LICENSE", "Jamie Wong", "SIL OPEN FONT LICENSE"} {
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
	if got := strings.Count(string(text), viewer.ToString()); got != 3 {
		t.Errorf("expected %s three times, got %d: %s", viewer, got, text)
	}
}
