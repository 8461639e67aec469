package fleettest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

// The grace of nodes is that of a cluster: the processors are busy, and no test is about lost nodes.
var server = testenv.Environment{Options: controlplane.Options{Controllers: true, Audit: true, NodeGrace: 40 * time.Second}}

// programs are built for the first test that needs them.
var programs struct {
	sshd.Programs
	once       sync.Once
	wmco, node string
	err        error
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	status := server.Main(m)
	if programs.node != "" {
		_ = programs.Remove() // a folder for temporary files
	}
	os.Exit(status)
}

func build(t *testing.T) {
	t.Helper()
	programs.once.Do(func() {
		ctx := context.Background()
		if programs.Programs, programs.err = sshd.Build(ctx); programs.err != nil {
			return
		}
		if programs.node, programs.err = programs.Go(ctx, "wmco/cmd/wmco-node"); programs.err == nil {
			programs.wmco, programs.err = programs.Go(ctx, "wmco/cmd/wmco")
		}
	})
	must(t, programs.err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	must(t, testenv.Eventually(t.Context(), what, done))
}
