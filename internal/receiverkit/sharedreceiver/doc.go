// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedreceiver makes one receiver of what the collector asks for signal by
// signal: one for each configuration, whatever signals have a pipeline. It is started
// once and shut down once, however many signals ask for it, and told which signals a
// pipeline uses when it is started, so that it builds nothing for the others.
//
// A receiver's factory.go is
//
//	func NewFactory() receiver.Factory {
//		shared := sharedreceiver.New(func(settings receiver.Settings, config component.Config) (sharedreceiver.Receiver, error) {
//			return newReceiver(settings, config.(*Config))
//		})
//		return receiver.NewFactory(
//			metadata.Type,
//			func() component.Config { return createDefaultConfig() },
//			receiver.WithTraces(shared.CreateTraces, metadata.TracesStability),
//			receiver.WithLogs(shared.CreateLogs, metadata.LogsStability),
//		)
//	}
//
// or, where it gives profiles too, made with the same functions of package xreceiver,
// and its receiver.go has Start and Shutdown of Receiver. The package knows no protocol
// and no data.
package sharedreceiver
