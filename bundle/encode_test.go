package bundle

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// A list of empty entries is refused before it is built.
func TestAManifestOfManyValuesTakesNoMemory(t *testing.T) {
	for _, list := range []string{"files", "services", "trustedCAs"} {
		text := `{"schema":1,"layers":[{"layer":{"schema":1,"` + list + `":[{}` + strings.Repeat(",{}", 5<<20) + `]}}]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeManifest([]byte(text))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", list, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: %d MB were allocated", list, used>>20)
		}
	}
}
