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

// A manifest that was not decoded has the limits of one that was: otherwise a host could record what it cannot read.
func TestAManifestInMemoryHasTheLimitsOfDecoding(t *testing.T) {
	m, err := Bundle{
		Cluster: Layer{Schema: Schema, Kind: LayerCluster, Stage: StageJoined},
		Node:    Layer{Schema: Schema, Kind: LayerNode, Stage: StageJoined},
	}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CheckEncoded(); err != nil {
		t.Errorf("a manifest of nothing: %v", err)
	}
	many, long, newer := m, m, m
	many.Layers = []Index{m.Layers[0], {Layer: Layer{Directories: make([]Directory, maxValues/3)}}}
	long.Layers = []Index{m.Layers[0], {Layer: Layer{Directories: []Directory{{Path: strings.Repeat("x", MaxManifest)}}}}}
	newer.Schema = Schema + 1
	for name, m := range map[string]Manifest{"many values": many, "many bytes": long} {
		if err := m.CheckEncoded(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var schema *SchemaError
	if err := newer.CheckEncoded(); !errors.As(err, &schema) {
		t.Errorf("a newer schema: %v", err)
	}
}
