package resolvers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
)

// machineCA is in the system's certificate store, as a node has the cluster's CAs; hosts files name no CA. Go reads the store
// once per process, on Linux from the file in SSL_CERT_FILE and on Windows from the system, so it must be there before the
// first connection. otherCA is in no store.
var machineCA, otherCA authority

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// containerd only logs an error in a file and then uses the registry itself.
	logrus.SetOutput(&complaints)
	if err := makeAuthorities(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	directory, err := os.MkdirTemp("", "resolvers")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(directory) }()
	file := filepath.Join(directory, "machine-store.pem")
	if err := os.WriteFile(file, machineCA.pem(), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("SSL_CERT_FILE", file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func makeAuthorities() (err error) {
	if machineCA, err = newAuthority("machine"); err != nil {
		return err
	}
	otherCA, err = newAuthority("other")
	return err
}

// complaints are the log lines of containerd about files that it cannot read.
var complaints complaintLog

type complaintLog struct {
	mu    sync.Mutex
	lines []string
}

func (c *complaintLog) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(string(p), "failed to decode") {
		c.lines = append(c.lines, string(p))
	}
	return len(p), nil
}

// take returns the complaints since the last call.
func (c *complaintLog) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}
