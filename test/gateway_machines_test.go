// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

// With the overlays of docs/scale.md for several machines, batches go from one tier to the other,
// and other clients get no connection.
func TestTiersOnSeveralMachinesRefuseOtherClients(t *testing.T) {
	t.Parallel()
	const agents, where, name = 3, "/etc/callbraid", "pairing.example.com"
	a := newAuthority(t)
	a.issue("pair", name)
	a.issue("receive", "receive.example.com")
	found := overlays(t, "scale.md")
	tt := newTiers(t, 1)
	address := testkit.Address(t)
	tt.pairOverlay = strings.NewReplacer(where, a.directory, "0.0.0.0:4320", address).Replace(found[0])
	tt.receiveOverlay = strings.ReplaceAll(found[1], where, a.directory)
	tt.pairAt(address)
	tt.receive(t.TempDir())
	startFleet(t, agents, tt.agents, openCapture(t, "shop")).complete(t)
	tt.awaitAccepted(agents*shopEvents, tt.pairing, 0)

	for what, certificate := range map[string]tls.Certificate{
		"no certificate": {}, "a certificate of another authority": newAuthority(t).issue("receive", "receive.example.com"),
	} {
		stranger, err := tls.Dial("tcp", address, &tls.Config{
			RootCAs: a.pool(), ServerName: name, NextProtos: []string{"h2"},
			// For any request of the server.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
		})
		require.NoError(t, err) // with TLS 1.3 the server's answer to the certificate arrives later
		require.NoError(t, stranger.SetDeadline(time.Now().Add(testkit.Patience)))
		_, err = stranger.Read(make([]byte, 1))
		assert.ErrorContains(t, err, "remote error: tls: ", what)
		assert.NoError(t, stranger.Close())
	}
	tt.stop()
	tt.checkEach(agents)
}

// authority issues certificates, into files of a directory: ca.pem is its own, and each other has
// its key beside it.
type authority struct {
	t           *testing.T
	directory   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, directory: t.TempDir()}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	require.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue issues a certificate for a name, for either side of a connection.
func (a *authority) issue(file, name string) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	require.NoError(a.t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	a.write(file+".pem", "CERTIFICATE", der)
	a.write(file+"-key.pem", "EC PRIVATE KEY", secret)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	require.NoError(a.t, os.WriteFile(filepath.Join(a.directory, name), text, 0o600))
}
