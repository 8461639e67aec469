package golden

import (
	"testing"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
	"wmco/payload"
	"wmco/payload/store"
)

// TestExamplePayload keeps golden/payload, which cases are rendered with: the executables of the table, each a line of text.
func TestExamplePayload(t *testing.T) {
	list := store.List{Schema: store.Schema}
	tree := map[string][]byte{}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range payload.Table() {
		raw := []byte("This stands for " + x.Name + ".exe.\n")
		stored := enc.EncodeAll(raw, nil)
		e := store.Entry{Name: x.Name, Path: x.Path, Module: x.Module, Version: x.Version, Go: "go1.26.0", Raw: blob(raw), Stored: blob(stored)}
		if x.Name == payload.Agent {
			e.Path, e.Version = payload.AgentPath(e.Raw.Digest), "v1.0.0"
		}
		list.Executables = append(list.Executables, e)
		tree[e.File()] = stored
	}
	data, err := list.Encode()
	if err != nil {
		t.Fatal(err)
	}
	tree[store.ListFile] = data
	compareTree(t, "payload", tree)
}

func blob(data []byte) store.Blob {
	return store.Blob{Digest: bundle.Of(data), Size: int64(len(data))}
}
