// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// writeCertificates writes the certificates of authorities for the image, which has no others. They are those that Mozilla trusts
// without conditions: PEM has no conditions.
func (r *release) writeCertificates() error {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	folder := filepath.Join(r.dist, "certificates")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "ca-certificates.crt"), all.Bytes(), 0o644)
}
