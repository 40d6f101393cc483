// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedreceiver makes one receiver for all signals of a configuration. The Collector creates, starts and shuts
// down a receiver for each signal. The shared one starts once and shuts down once. Its Start receives the signals that
// have a pipeline, so it makes no data for the others.
//
// A receiver's factory.go is
//
//	func NewFactory() receiver.Factory {
//		shared := receiverkit.Share(newReceiver)
//		return receiver.NewFactory(
//			metadata.Type,
//			func() component.Config { return createDefaultConfig() },
//			receiver.WithTraces(shared.CreateTraces, metadata.TracesStability),
//			receiver.WithLogs(shared.CreateLogs, metadata.LogsStability),
//		)
//	}
//
// A receiver of profiles uses the same functions of package xreceiver. Its receiver.go has Start and Shutdown of
// Receiver. The package knows no protocol and no data.
package sharedreceiver
