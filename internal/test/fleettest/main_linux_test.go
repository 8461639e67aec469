package fleettest

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/internal/test/sshtest"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

// The grace of nodes is that of a cluster: the processors are busy, and no test is about lost nodes.
var server = testenv.Environment{Options: controlplane.Options{Controllers: true, Audit: true, NodeGrace: 40 * time.Second}}

var programs sshtest.Shared

var must, eventually, background, number = testenv.Must, testenv.Await, testenv.RunInBackground, testenv.Number

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	status := server.Main(m)
	programs.Remove()
	os.Exit(status)
}
