package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"wmco/gateway/places"
	"wmco/gateway/signatures"
	"wmco/internal/test/winetest"
)

// TestTheProgramAnswersOnWindows, in the folder of the gateway's state.
func TestTheProgramAnswersOnWindows(t *testing.T) {
	machine := winetest.New(t)
	exe := filepath.Join(t.TempDir(), "image-verifier.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "containers_image_openpgp", "-o", exe, ".")
	build.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(exe)
	must(t, err)
	const path = `C:\k\image-verifier.exe`
	machine.WriteFile(t, path, program)
	machine.WriteFile(t, places.State+`\ca.crt`, nil)
	key, image := newKey(t), []byte(`{"schemaVersion":2}`)
	payload := payloadOf(t, name+":v1", digest.FromBytes(image).String())
	for text, accepted := range map[string]bool{name + ":v1": true, name + ":v2": false} {
		question := encodeJSON(t, signatures.Question{
			Schema: 1, Image: text, Manifest: image,
			Policy: encodeJSON(t, map[string]any{"default": []any{places.Requirement{
				Type: places.SigstoreSigned, KeyData: publicPEM(t, key), SignedIdentity: places.Identity{Type: "matchRepoDigestOrExact"},
			}}}),
			Signatures: []signatures.Signature{{
				MIMEType: signatures.MediaType, Payload: payload, Annotations: map[string]string{"dev.cosignproject.cosign/signature": signPayload(t, key, payload)},
			}},
		})
		r := machine.Run(t, winetest.Command{Path: path, Args: []string{places.State}, Stdin: string(question)})
		var a signatures.Answer
		if err := json.Unmarshal([]byte(strings.TrimSpace(r.Stdout)), &a); err != nil || a.Accepted != accepted {
			t.Errorf("%s: %v: %+v", text, err, r)
		}
	}
}
