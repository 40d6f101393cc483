// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package openlistener

import (
	"net"
	"net/netip"

	"go.opentelemetry.io/collector/config/configtls"
	"go.uber.org/zap"
)

// Messages of the warnings.
const (
	WithoutTLS          = "Other machines can connect to this listener, it does not authenticate clients, and it does not encrypt"
	WithoutCertificates = "Other machines can connect to this listener, and its TLS does not authenticate clients"
)

// Listener is a listener that has been opened.
type Listener struct {
	// Component is the ID of the component, or the program, that owns the listener.
	Component string
	// Address is the actual address, of net.Listener.Addr.
	Address net.Addr
	// TLS has the settings of encryption; nil: the listener does not encrypt.
	TLS *configtls.ServerConfig
	// Authenticated means that an authenticator checks every request.
	Authenticated bool
	// Remedy names the settings that close the listener, such as "listen on localhost".
	Remedy string
}

// Warn logs one warning if other machines can connect to the listener, and it requires neither client certificates nor
// an authenticator. Call it once, after the start.
func (l Listener) Warn(logger *zap.Logger) {
	if message := l.warning(); message != "" {
		logger.WithOptions(zap.AddCallerSkip(1)).Warn(message, zap.String("component", l.Component), zap.Stringer("address", l.Address), zap.String("remedy", l.Remedy))
	}
}

// warning returns the message for the listener; empty: no warning is necessary.
func (l Listener) warning() string {
	switch {
	case !reachable(l.Address) || l.Authenticated:
		return ""
	case l.TLS == nil:
		return WithoutTLS
	case l.TLS.ClientCAFile == "":
		return WithoutCertificates
	default:
		return ""
	}
}

// reachable reports whether other machines may connect to an address. An address of an unknown
// kind counts as reachable.
func reachable(address net.Addr) bool {
	switch a := address.(type) {
	case *net.UnixAddr:
		return false
	case *net.TCPAddr:
		return !a.IP.IsLoopback()
	}
	at, err := netip.ParseAddrPort(address.String())
	return err != nil || !at.Addr().Unmap().IsLoopback()
}
