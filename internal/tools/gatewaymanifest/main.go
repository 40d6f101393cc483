// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command gatewaymanifest writes the builder's manifest of the gateway's distribution from that of
// the ordinary one. The builder accepts only one file, and two files with a common part would have
// to be changed together.
package main

import (
	"fmt"
	"os"
)

//go:generate go run . ../../../builder-config.yaml ../../../builder-config-gateway.yaml

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gatewaymanifest FROM TO")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gatewaymanifest:", err)
		os.Exit(1)
	}
}

func write(from, to string) error {
	distribution, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	manifest, err := gateway(string(distribution))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, []byte(manifest), 0o644)
}
