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
	WithoutTLS          = "Other machines can connect to this listener, it does not ask clients who they are, and it does not encrypt"
	WithoutCertificates = "Other machines can connect to this listener, and its TLS does not ask clients who they are"
)

// Listener is a listener that has been opened.
type Listener struct {
	// Component is the ID of the component, or the program, that owns the listener.
	Component string
	// Address is the address that the listener has: that of net.Listener.Addr.
	Address net.Addr
	// TLS is how the listener encrypts; nil: it does not.
	TLS *configtls.ServerConfig
	// Authenticated means that an authenticator checks every request.
	Authenticated bool
	// Remedy says which settings close the listener, such as "listen on localhost".
	Remedy string
}

// Warn logs one warning if other machines can connect to the listener and neither client
// certificates nor an authenticator say who they are. Call it once, after the start.
func (l Listener) Warn(logger *zap.Logger) {
	if message := l.warning(); message != "" {
		logger.WithOptions(zap.AddCallerSkip(1)).Warn(message, zap.String("component", l.Component), zap.Stringer("address", l.Address), zap.String("remedy", l.Remedy))
	}
}

// warning is the message for the listener; empty: there is nothing to warn of.
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
