// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

// writeCertificate writes a certificate of its own for localhost into files of dir.
func writeCertificate(t *testing.T, dir string) (certificate, key string, pool *x509.CertPool, pair tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	certificate, key = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	require.NoError(t, os.WriteFile(certificate, certificatePEM, 0o600))
	require.NoError(t, os.WriteFile(key, keyPEM, 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificatePEM))
	pair, err = tls.X509KeyPair(certificatePEM, keyPEM)
	require.NoError(t, err)
	return certificate, key, pool, pair
}

func dialTLS(t *testing.T, address string, config *tls.Config) *peer {
	t.Helper()
	conn, err := tls.Dial("tcp", address, config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{t: t, conn: conn, version: 1}
}

func TestAgentsCanUseTLSAndNeedAClientCertificate(t *testing.T) {
	certificate, key, pool, pair := writeCertificate(t, t.TempDir())
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) {
		c.TLS = configoptional.Some(configtls.ServerConfig{
			Config: configtls.Config{CertFile: certificate, KeyFile: key}, ClientCAFile: certificate,
		})
		c.Limits.HandshakeTimeout = 500 * time.Millisecond
	}, func(b *bed, _ *Config) { b.timing.parting = receivertestbed.Patience })
	client := &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{pair}}

	// Without a certificate it ends with the handshake of TLS.
	stranger := dialTLS(t, b.address(), &tls.Config{RootCAs: pool, ServerName: "localhost"})
	_, _ = stranger.conn.Write(encode(bytefrog.Hello{Version: 1}))
	stranger.expectEnd()
	// So does one that speaks no TLS.
	plain := dial(t, b.address())
	plain.send(bytefrog.Hello{Version: 1})
	plain.expectEnd()

	control := dialTLS(t, b.address(), client)
	control.send(bytefrog.Hello{Version: 1})
	m, err := control.receive()
	require.NoError(t, err)
	configuration, err := bytefrog.ParseAgentConfiguration(m)
	require.NoError(t, err)
	control.expectCommand(bytefrog.TypeStart)
	data := dialTLS(t, b.address(), client)
	data.send(bytefrog.DataHello{Run: configuration.RunID})
	data.expect(bytefrog.DataHelloReply{})
	data.write(append(namesOne(), calls(0, 50_000)...))
	// A batch that is closed by its age: the read that was given up for it can go on.
	b.Await("all events", func() bool { return b.events() == 100_000 })
	data.write(calls(100_000, 5))
	b.Await("more events", func() bool { return b.events() == 100_010 })

	done := make(chan error, 1)
	go func() { done <- b.Component().Shutdown(context.Background()) }()
	control.expectCommand(bytefrog.TypeSuspend)
	control.send(bytefrog.DataBreak{Sequence: 100_010})
	assert.Equal(t, "the receiver is shutting down", control.expectError())
	data.close()
	control.close()
	require.NoError(t, <-done)
	assert.Zero(t, b.Counter("lingering_cut"))
	assert.Len(t, b.only().events, 100_010)
}
