// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// portFiles are all port files. The receiver checks them while it runs: a session daemon
// removes them when it ends, even if another process wrote them.
type portFiles struct {
	env   *environment
	files []*watchedFile
	// watching is the goroutine that checks the files.
	watching sync.WaitGroup
}

// watchedFile is a port file that is checked.
type watchedFile struct {
	*portFile
	// ours: the receiver owned the file at its start.
	ours bool
	// health is the file's part of the component's health.
	health *serverhealth.Part
	// notOwned is a burst of checks in which the receiver didn't own the file.
	notOwned logline.Burst
	// rewritten limits log lines of files that are written again.
	rewritten logline.Seldom
}

// claimPortFiles writes the port of an address into all files of the configuration. The receiver retries a file of
// another daemon until that daemon ends. It also retries a file that it cannot write: the directory of the system's
// file is missing after each boot until a program creates it. If a file is not a port file, it returns an error and
// removes all files.
func claimPortFiles(env *environment, address net.Addr) (*portFiles, error) {
	p := &portFiles{env: env}
	tcp, ok := address.(*net.TCPAddr)
	if len(env.config.PortFiles) > 0 && (!ok || !tcp.IP.IsUnspecified() && tcp.IP.String() != agentHost) {
		return nil, fmt.Errorf("port_files are set, and endpoint is %s: agents connect to %s: set its host to localhost", address, agentHost)
	}
	for i, path := range env.config.PortFiles {
		if err := p.open(path, tcp.Port); err != nil {
			p.release()
			return nil, fmt.Errorf("port_files[%d]: %w", i, err)
		}
	}
	return p, nil
}

func (p *portFiles) open(path string, port int) error {
	file, err := newPortFile(path, port)
	if err != nil {
		return err
	}
	f := &watchedFile{portFile: file, health: p.env.Health.Part("port file " + file.path)}
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
func (p *portFiles) reportLost(f *watchedFile, err error) {
	f.health.Failed(err)
	p.env.LogSeldom(&f.notOwned, p.env.Logger.Error, "This receiver doesn't own a port file: agents that read it connect elsewhere. Retrying",
		zap.Error(err), zap.Duration("every", p.env.checkPortFiles))
}

// watch checks the files until the receiver stops.
func (p *portFiles) watch() {
	if len(p.files) > 0 {
		p.watching.Go(p.run)
	}
}

func (p *portFiles) run() {
	ticker := time.NewTicker(p.env.checkPortFiles)
	defer ticker.Stop()
	for {
		select {
		case <-p.env.Serving.Done():
			return
		case <-ticker.C:
		}
		for _, f := range p.files {
			p.check(f)
		}
	}
}

// check writes a missing or stale file again, and reports a file of another daemon.
func (p *portFiles) check(f *watchedFile) {
	written, err := f.claim()
	if written || err != nil {
		p.env.telemetry.portFileLost()
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
	p.env.LogSeldom(&f.rewritten, p.env.Logger.Info, "A port file is written again",
		zap.String("file", f.path))
}

// release removes the files that the receiver owns. The watching goroutine has ended, or
// ends now.
func (p *portFiles) release() {
	p.watching.Wait()
	for _, f := range p.files {
		if err := f.release(); err != nil {
			p.env.Logger.Error("A port file cannot be removed", zap.String("file", f.path), zap.Error(err))
		}
	}
}

// claimed returns the paths of the files that the receiver owned at its start.
func (p *portFiles) claimed() []string {
	paths := []string{}
	for _, f := range p.files {
		if f.ours {
			paths = append(paths, f.path)
		}
	}
	return paths
}
