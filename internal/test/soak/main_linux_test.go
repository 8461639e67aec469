package soak

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/internal/test/testenv"
)

var server testenv.Environment

var must, number = testenv.Must, testenv.Number

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if kubeconfig := os.Getenv(operatorVariable); kubeconfig != "" {
		os.Exit(runOperator(kubeconfig))
	}
	os.Exit(server.Main(m))
}
