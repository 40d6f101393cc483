// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package receiverkit is the part of a receiver that is the same for every protocol: one
// instance for all signals, its life cycle, common settings, hand-overs to pipelines, the
// metrics loop, own telemetry, and the shutdown. It knows no protocol.
//
// A receiver is then these files, and its protocol:
//
//	config.go     Config, with receiverkit.Config squashed into it, and its Validate
//	factory.go    NewFactory, made of Share(newReceiver)
//	receiver.go   newReceiver, and a Protocol: Start, Stop and Close
//	metrics.go    metrics of the traced programs; also logs.go and spans.go, for each signal that the receiver makes itself
//	resource.go   the resource of the data, if it is more than settings
//	steering.go   the commands of operators, if agents accept any
//
// Each other state is a file or a package below. The receiver's own metrics are in telemetry.go, or in the packages
// internal/telemetry or internal/counters if other packages below count too.
//
// The life of a receiver, and the work of Receiver in each step:
//
//  1. The collector creates it: newReceiver makes a Kit and a Protocol.
//  2. Start makes a Run. Protocol.Start opens the outputs of the run (NewLogs, NewSpans,
//     NewProfiles, NewMetrics), connects or listens, and starts goroutines with Run.Go. A receiver
//     of call events opens NewBatches for each peer. A client has a goroutine for each server, which
//     connects again until Run.Serving ends: a server that cannot be reached is no error of Start.
//  3. Shutdown ends Run.Serving and calls Protocol.Stop, which begins to disconnect.
//     Run.Leaving ends after Kit.PeerTime, when the time for peers is over.
//  4. When all goroutines have ended the outputs deliver the remaining data.
//  5. Run.Delivering ends after shutdown_timeout: outputs then drop and count the rest.
//  6. Protocol.Close frees everything that newReceiver made.
//
// The packages below have the parts: sharedreceiver (one instance for all signals), handover
// (delivery to pipelines), serverhealth (component status), servermemory (memory of a server),
// metricseries (metrics with many points) and eventswitch (log records that are switched off).
// Package receivertestbed is the test bed of a receiver.
package receiverkit
