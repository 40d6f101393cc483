// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package portfile

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// Settings configure a set.
type Settings struct {
	Run *receiverkit.Run
	// Paths are the files of the configuration.
	Paths []string
	// CheckInterval is the time between two checks.
	CheckInterval time.Duration
	// Lost counts a check that found a missing, stale or foreign file.
	Lost func()
}

// Set has all port files of a receiver. It checks them while the receiver runs, because a session daemon removes them
// when it ends, even if another process wrote them.
type Set struct {
	settings Settings
	files    []*watchedFile
	// watching is the goroutine that checks the files.
	watching sync.WaitGroup
}

// watchedFile is a port file that is checked.
type watchedFile struct {
	*file
	// ours: the receiver owned the file at its start.
	ours bool
	// health is the file's part of the component's health.
	health *serverhealth.Part
	// notOwned is a burst of checks in which the receiver didn't own the file.
	notOwned logline.Burst
	// rewritten limits log lines of files that are written again.
	rewritten logline.Seldom
}

// Claim writes the port of an address into all files of the configuration. Watch retries a file of another daemon until
// that daemon ends. It also retries a file that it cannot write: the directory of the system's file is missing after
// each boot until a program creates it. If a file is not a port file, Claim returns an error and removes all files.
func Claim(address net.Addr, settings Settings) (*Set, error) {
	p := &Set{settings: settings}
	tcp, ok := address.(*net.TCPAddr)
	if len(settings.Paths) > 0 && (!ok || !tcp.IP.IsUnspecified() && tcp.IP.String() != agentHost) {
		return nil, fmt.Errorf("port_files are set, and endpoint is %s: agents connect to %s: set its host to localhost", address, agentHost)
	}
	for i, path := range settings.Paths {
		if err := p.open(path, tcp.Port); err != nil {
			p.Release()
			return nil, fmt.Errorf("port_files[%d]: %w", i, err)
		}
	}
	return p, nil
}

func (p *Set) open(path string, port int) error {
	opened, err := newFile(path, port)
	if err != nil {
		return err
	}
	f := &watchedFile{file: opened, health: p.settings.Run.Health.Part("port file " + opened.path)}
	_, err = f.claim()
	var strange *strangeError
	if errors.As(err, &strange) {
		return err
	}
	f.ours = err == nil
	if !f.ours {
		p.reportLost(f, err)
	}
	p.files = append(p.files, f)
	return nil
}

// reportLost reports that the receiver does not own a file, once for a burst.
func (p *Set) reportLost(f *watchedFile, err error) {
	f.health.Failed(err)
	p.settings.Run.LogSeldom(&f.notOwned, p.settings.Run.Logger.Error, "This receiver doesn't own a port file: agents that read it connect elsewhere. Retrying",
		zap.Error(err), zap.Duration("every", p.settings.CheckInterval))
}

// Watch checks the files until the receiver stops.
func (p *Set) Watch() {
	if len(p.files) > 0 {
		p.watching.Go(p.run)
	}
}

func (p *Set) run() {
	ticker := time.NewTicker(p.settings.CheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.settings.Run.Serving.Done():
			return
		case <-ticker.C:
		}
		for _, f := range p.files {
			p.check(f)
		}
	}
}

// check writes a missing or stale file again, and reports a file of another daemon.
func (p *Set) check(f *watchedFile) {
	written, err := f.claim()
	if written || err != nil {
		p.settings.Lost()
	}
	if err != nil {
		p.reportLost(f, err)
		return
	}
	f.notOwned.Over()
	f.health.Up()
	if !written {
		return
	}
	p.settings.Run.LogSeldom(&f.rewritten, p.settings.Run.Logger.Info, "A port file is written again",
		zap.String("file", f.path))
}

// Release removes the files that the receiver owns. The watching goroutine has ended, or
// ends now.
func (p *Set) Release() {
	p.watching.Wait()
	for _, f := range p.files {
		if err := f.release(); err != nil {
			p.settings.Run.Logger.Error("A port file cannot be removed", zap.String("file", f.path), zap.Error(err))
		}
	}
}

// Claimed returns the paths of the files that the receiver owned at its start.
func (p *Set) Claimed() []string {
	paths := []string{}
	for _, f := range p.files {
		if f.ours {
			paths = append(paths, f.path)
		}
	}
	return paths
}
