package world

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/internal/test/testenv"
)

var must, number = testenv.Must, testenv.Number

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// The library pauses after errors by a clock that it shares with what is outside of the bubble.
	utilruntime.ErrorHandlers = nil
	debug.SetGCPercent(400) //nolint:mnd // worlds are small and make much garbage
	os.Exit(m.Run())
}
